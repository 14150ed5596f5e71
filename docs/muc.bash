# printed by muc help --completion; do not edit
_muc() {
    local word="${COMP_WORDS[COMP_CWORD]}" options=""
    if [ "$COMP_CWORD" = 1 ]; then
        COMPREPLY=($(compgen -W "compile run eval fit new flash frontend merge tokenize bench verify train report sweep inspect dis as quantize compress synth targets formats ops doctor playground help" -- "$word"))
        return
    fi
    case "${COMP_WORDS[COMP_CWORD - 1]}" in
    --target) options="$(muc targets | awk 'NR > 2 && !NF { exit } NR > 2 { print $1 }')" ;;
    --machine) options="$(muc targets | awk 'known && $2 != "name" { print $2 } /^machines:/ { known = 1 }')" ;;
    --board) options="$(muc targets | awk 'known && $1 == "mcu" { print $2 } /^machines:/ { known = 1 }')" ;;
    esac
    if [ -n "$options" ]; then
        COMPREPLY=($(compgen -W "$options" -- "$word") $(compgen -f -- "$word"))
        return
    fi
    case "${COMP_WORDS[1]}" in
    compile) options="--output --force --input --image --preprocess --dim --type --arch --target --machine --quant --bits --calib --keep-float --act-terms --attention --name --package --patch --fuse --weights-file --pes --element --hex --strip --ctx-size --tokenizer --threads --json --color --help" ;;
    run) options="--output --input --image --preprocess --labels --qemu --dim --type --arch --machine --quant --calib --keep-float --dump --prompt --file --interactive --chat --chat-template --system --stop --prompt-cache --json-lines --raw --no-special --n-predict --temp --top-k --top-p --min-p --repeat-penalty --seed --ctx-size --tokenizer --threads --json --color --help" ;;
    eval) options="--shard --text --task --choices --stride --save-logits --kl --window --limit --reference --ctx-size --tokenizer --threads --json --color --help" ;;
    fit) options="--dim --type --arch --target --machine --ctx-size --tokenizer --threads --format --json --color --help" ;;
    new) options="--preprocess --dim --type --arch --board --model --quant --calib --keep-float --ctx-size --tokenizer --threads --json --color --help" ;;
    flash) options="--board --run --json --color --help" ;;
    frontend) options="--output --force --features --machine --name --package --json --color --help" ;;
    merge) options="--output --tokenizer --format --table --json --color --help" ;;
    tokenize) options="--prompt --file --ids --no-bos --no-special --tokenizer --format --table --json --color --help" ;;
    bench) options="--n-predict --n-prompt --n-depth --repetitions --ctx-size --tokenizer --threads --format --table --json --color --help" ;;
    verify) options="--input --image --preprocess --dim --type --arch --quant --calib --keep-float --trace --prompt --ctx-size --tokenizer --threads --format --table --json --color --help" ;;
    train) options="--output --force --seed --window --data --cases --held-out --steps --batch --rate --least-rate --warm-up --decay --clip --prompt-loss --every --vocab --prune --resume --tokenizer --threads --format --table --json --color --help" ;;
    report) options="--output --input --qemu --cycles --machine --compare --trace --position --call --format --table --json --color --help" ;;
    sweep) options="--output --shard --progress --threads --format --table --json --color --help" ;;
    inspect) options="--preprocess --dim --type --arch --quant --calib --keep-float --tokenizer --format --table --json --color --help" ;;
    dis) options="--position --call --color --help" ;;
    as) options="--output --color --help" ;;
    quantize) options="--output --quant --bits --calib --shard --ctx-size --tokenizer --threads --json --color --help" ;;
    compress) options="--output --force --machine --quant --bits --embed-bits --budget-flash --calib --seed --text --task --window --limit --data --teacher --cases --steps --batch --rate --prune --ctx-size --tokenizer --threads --json --color --help" ;;
    synth) options="--output --shape --layers --force --seed --threads --json --color --help" ;;
    targets) options="--json --color --help" ;;
    formats) options="--json --color --help" ;;
    ops) options="--json --color --help" ;;
    doctor) options="--json --color --help" ;;
    playground) options="--port --page --color --help" ;;
    help) options="--man --completion --color --help" ;;
    esac
    case "$word" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
    esac
}
complete -o filenames -F _muc muc
