#!/usr/bin/env python3
"""Writes tests/chat_cases.def: what llama.cpp makes of conversations, by the template that it recognises, and what Jinja makes of those
that llama.cpp takes for others.

    tests/oracle/chat_templates.py LIBLLAMA.so > tests/chat_cases.def

The templates are shortened from those that models are published with. A case has the text of a first turn with a system
message, of one without, and the text that llama.cpp's chat appends for a second message after an answer, which ended
with the template's own end: what the longer conversation has more, and the line's end that the shorter one ended with.
"""
import ctypes
import sys

import jinja2

TEMPLATES = {
    "chatml": "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}",
    "phi4": "{% if message['role'] == 'user' %}{{'<|im_start|>user<|im_sep|>' + message['content'] + '<|im_end|>'}}{% endif %}",
    "llama2": "{{ bos_token }}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}{% endif %}",
    "llama2-sys": "{{ '[INST] <<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + message['content'] + ' [/INST]' }}",
    "llama2-sys-bos": "{{ bos_token + '[INST] ' + '<<SYS>>' + message['content'] + ' [/INST]' }}",
    "llama2-sys-strip": "{{ bos_token + '[INST] <<SYS>>' + content.strip() + ' [/INST]' }}",
    "mistral-v1": "{{ ' [INST] ' + system_message + message['content'] + ' [/INST]' }}",
    "mistral-v3": "{{ '[AVAILABLE_TOOLS] ' }}{{ '[INST] ' + message['content'] + '[/INST]' }}",
    "mistral-v3-tekken": "{{ '[AVAILABLE_TOOLS]' }}{{ \"[INST]\" + message['content'] + \"[/INST]\" }}",
    "mistral-v7": "{{ '[SYSTEM_PROMPT] ' + system + '[/SYSTEM_PROMPT]' }}{{ '[INST] ' + message['content'] + '[/INST]' }}",
    "phi3": "{{'<|user|>' + '\\n' + message['content'] + '<|end|>' + '\\n' + '<|assistant|>' + '\\n'}}",
    "gemma": "{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}",
    "vicuna": "{{ 'USER: ' + message['content'] }}{{ 'ASSISTANT: ' + message['content'] + '</s>' }}",
    "llama3": "{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' %}",
    "granite": "{{- '<|start_of_role|>user<|end_of_role|>' + message['content'] + '<|end_of_text|>\\n' }}",
}
# what llama.cpp takes for mistral-v7, phi3 and GLM-Edge's form
OTHERS = {
    "mistral-v7-tekken": "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}"
        "{{ '[INST]' + message['content'] + '[/INST]' }}{% elif message['role'] == 'system' %}"
        "{{ '[SYSTEM_PROMPT]' + message['content'] + '[/SYSTEM_PROMPT]' }}{% else %}{{ message['content'] + eos_token }}{% endif %}{% endfor %}",
    "phi4-mini": "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}",
    "zephyr": "{% for message in messages %}{% if message['role'] == 'user' %}{{ '<|user|>\n' + message['content'] + eos_token }}"
        "{% elif message['role'] == 'system' %}{{ '<|system|>\n' + message['content'] + eos_token }}"
        "{% else %}{{ '<|assistant|>\n' + message['content'] + eos_token }}{% endif %}{{ '\n' }}"
        "{% if loop.last and add_generation_prompt %}{{ '<|assistant|>' }}{{ '\n' }}{% endif %}{% endfor %}",
    "olmo2": "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'system' %}{{ '<|system|>\n' + message['content'] + '\n' }}"
        "{% elif message['role'] == 'user' %}{{ '<|user|>\n' + message['content'] + '\n' }}"
        "{% else %}{{ '<|assistant|>\n' + message['content'] + eos_token + '\n' }}{% endif %}"
        "{% if loop.last and add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}{% endfor %}",
}
# the token's text by which the answer ended, which chat has in its cache already
END = {"chatml": "<|im_end|>", "phi4": "<|im_end|>", "phi3": "<|end|>", "gemma": "<end_of_turn>", "llama3": "<|eot_id|>",
       "granite": "<|end_of_text|>", "phi4-mini": "<|end|>"}


class Message(ctypes.Structure):
    _fields_ = [("role", ctypes.c_char_p), ("content", ctypes.c_char_p)]


def apply(library, template, messages, answers):
    chat = (Message * len(messages))(*[(role.encode(), text.encode()) for role, text in messages])
    out = ctypes.create_string_buffer(65536)
    size = library.llama_chat_apply_template(template.encode(), chat, ctypes.c_size_t(len(messages)), answers, out, len(out))
    if size < 0:
        raise SystemExit(f"llama.cpp does not know {template}")
    return out.raw[:size].decode()


def rendered(_, template, messages, answers):
    roles = [{"role": role, "content": text} for role, text in messages]
    return jinja2.Template(template, keep_trailing_newline=True).render(messages=roles, add_generation_prompt=answers, bos_token="",
                                                                        eos_token="</s>")


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def main():
    library = ctypes.CDLL(sys.argv[1])
    system, first, answer, second = ("system", "Be brief. "), ("user", " Hello?"), ("assistant", "Yes."), ("user", "Why?")
    print("/* chat_cases.def - conversations as llama.cpp or Jinja writes them: written by tests/oracle/chat_templates.py.\n *\n"
          " * CHAT_CASE(name, template, with system, without, second message) */\n/* clang-format off */")
    for name, template, write in [(*row, apply) for row in TEMPLATES.items()] + [(*row, rendered) for row in OTHERS.items()]:
        past = write(library, template, [system, first, answer], False)
        whole = write(library, template, [system, first, answer, second], True)
        assert whole.startswith(past), (past, whole)
        end = END.get(name, "</s>")
        line = past[past.rindex("Yes.") + 4:]
        assert line.startswith(end), (name, past)
        cases = [write(library, template, [system, first], True), write(library, template, [first], True), line[len(end):] + whole[len(past):]]
        print(f"CHAT_CASE({quoted(name)}, {quoted(template)},\n    " + ",\n    ".join(map(quoted, cases)) + ")")
    print("/* clang-format on */")


if __name__ == "__main__":
    main()
