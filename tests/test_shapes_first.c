/* What cannot be compiled is refused from shapes: checkpoints and networks of up to a billion
 * weights whose pages must not be read. A read is a segmentation fault. */
#include <errno.h>
#include <sys/mman.h>

#include "check.h"
#include "driver/compile/chosen_target.h"
#include "run/model_graph.h"
#include "targets/uthinker/uthinker.h"

typedef struct shape {
    const char *architecture, *type;
    uint32_t width, layers, heads, kv_heads, head_width, ffn_width, vocabulary, context;
    bool biases, head_norms;
} shape;

/* of the size and with the peculiarities of published models */
static const shape qwen2 = { .architecture = "Qwen2ForCausalLM",
                             .type = "qwen2",
                             .width = 896,
                             .layers = 24,
                             .heads = 14,
                             .kv_heads = 2,
                             .head_width = 64,
                             .ffn_width = 4864,
                             .vocabulary = 151936,
                             .context = 32768,
                             .biases = true };
static const shape qwen3 = { .architecture = "Qwen3ForCausalLM",
                             .type = "qwen3",
                             .width = 1024,
                             .layers = 28,
                             .heads = 16,
                             .kv_heads = 8,
                             .head_width = 128,
                             .ffn_width = 3072,
                             .vocabulary = 151936,
                             .context = 40960,
                             .head_norms = true };
static const shape smol = { .architecture = "LlamaForCausalLM",
                            .type = "llama",
                            .width = 576,
                            .layers = 30,
                            .heads = 9,
                            .kv_heads = 3,
                            .head_width = 64,
                            .ffn_width = 1536,
                            .vocabulary = 49152,
                            .context = 2048 };

/* ---- a checkpoint without weights ---- */

static char folder[64];
static muc_context *ctx;

typedef struct header {
    FILE *file;
    uint64_t at;
} header;

/* rows 0: a vector of columns; layer below 0: none */
static void add_tensor(header *h, int layer, const char *name, uint32_t rows, uint32_t columns)
{
    uint64_t bytes = 2 * (uint64_t)(rows ? rows : 1) * columns;
    char full[128], dims[32];

    snprintf(full, sizeof(full), "model.layers.%d.%s", layer, name);
    if (rows)
        snprintf(dims, sizeof(dims), "%u, %u", rows, columns);
    else
        snprintf(dims, sizeof(dims), "%u", columns);
    fprintf(h->file,
            "%s\"%s\": {\"dtype\": \"BF16\", \"shape\": [%s], \"data_offsets\": [%llu, %llu]}",
            h->at ? ", " : "{", layer < 0 ? name : full, dims, (unsigned long long)h->at,
            (unsigned long long)(h->at + bytes));
    h->at += bytes;
}

static void add_layer(header *h, const shape *s, int l)
{
    uint32_t queries = s->heads * s->head_width, keys = s->kv_heads * s->head_width;

    add_tensor(h, l, "input_layernorm.weight", 0, s->width);
    add_tensor(h, l, "self_attn.q_proj.weight", queries, s->width);
    add_tensor(h, l, "self_attn.k_proj.weight", keys, s->width);
    add_tensor(h, l, "self_attn.v_proj.weight", keys, s->width);
    add_tensor(h, l, "self_attn.o_proj.weight", s->width, queries);
    add_tensor(h, l, "post_attention_layernorm.weight", 0, s->width);
    add_tensor(h, l, "mlp.gate_proj.weight", s->ffn_width, s->width);
    add_tensor(h, l, "mlp.up_proj.weight", s->ffn_width, s->width);
    add_tensor(h, l, "mlp.down_proj.weight", s->width, s->ffn_width);
    if (s->biases) {
        add_tensor(h, l, "self_attn.q_proj.bias", 0, queries);
        add_tensor(h, l, "self_attn.k_proj.bias", 0, keys);
        add_tensor(h, l, "self_attn.v_proj.bias", 0, keys);
    }
    if (s->head_norms) {
        add_tensor(h, l, "self_attn.q_norm.weight", 0, s->head_width);
        add_tensor(h, l, "self_attn.k_norm.weight", 0, s->head_width);
    }
}

static FILE *open_in_folder(const char *name, const char *mode)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, mode);
    assert_non_null(file);
    return file;
}

static void write_config(const shape *s)
{
    FILE *file = open_in_folder("config.json", "w");

    fprintf(file,
            "{\"architectures\": [\"%s\"], \"model_type\": \"%s\", \"hidden_size\": %u, "
            "\"num_hidden_layers\": %u, \"num_attention_heads\": %u, \"num_key_value_heads\": %u, "
            "\"head_dim\": %u, \"intermediate_size\": %u, \"vocab_size\": %u, "
            "\"max_position_embeddings\": %u, \"rms_norm_eps\": 1e-6, \"rope_theta\": 10000.0, "
            "\"hidden_act\": \"silu\", \"tie_word_embeddings\": true, \"bos_token_id\": 1, "
            "\"eos_token_id\": 2}\n",
            s->architecture, s->type, s->width, s->layers, s->heads, s->kv_heads, s->head_width,
            s->ffn_width, s->vocabulary, s->context);
    fclose(file);
}

/* a header, and a hole in place of the weights */
static void write_weights(const shape *s)
{
    FILE *file = open_in_folder("model.safetensors", "w");
    header h = { file, 0 };
    uint64_t size;

    fwrite("--------", 1, 8, file);
    add_tensor(&h, -1, "model.embed_tokens.weight", s->vocabulary, s->width);
    add_tensor(&h, -1, "model.norm.weight", 0, s->width);
    for (uint32_t l = 0; l < s->layers; l++)
        add_layer(&h, s, (int)l);
    fprintf(file, "}");
    while ((size = (uint64_t)ftell(file) - 8) % 8 != 0)
        fputc(' ', file);
    rewind(file);
    fwrite(&size, 1, 8, file);
    fflush(file);
    CHECK_EQ(ftruncate(fileno(file), (off_t)(8 + size + h.at)), 0);
    fclose(file);
}

/* Whoever reads a weight from here on crashes; the page of the header's end may be read. */
static void forbid_reading(const muc_model *model)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = UINTPTR_MAX, end = 0;

    for (size_t i = 0; i < model->checkpoint.tensor_count; i++) {
        const muc_tensor_view *view = &model->checkpoint.tensors[i];
        uintptr_t at = (uintptr_t)view->data;

        first = at < first ? at : first;
        end = at + view->bytes > end ? at + view->bytes : end;
    }
    first = (first + page - 1) / page * page;
    CHECK(end - first > 100000000);
    CHECK_EQ(mprotect((void *)first, end - first, PROT_NONE), 0);
}

/* ---- compiling it ---- */

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/muc-shapes-XXXXXX");
    ctx = muc_context_new(1);
    return mkdtemp(folder) && ctx ? 0 : 1;
}

static int tear_down(void **state)
{
    char command[96];

    (void)state;
    muc_context_free(ctx);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command);
}

static void open_model(const shape *s, uint32_t context, muc_model **out)
{
    const muc_model_options how = { .context = context,
                                    .tokenizer = "models/rescue/tokenizer.model" };

    write_config(s);
    write_weights(s);
    CHECK_OK(ctx, muc_model_open(ctx, folder, &how, out));
    forbid_reading(*out);
}

/* The message of a refusal, which names the model's folder; NULL: it was not refused with status.
 */
static const char *refusal(const shape *s, uint32_t context, const muc_compile_options *options,
                           muc_status status)
{
    static char message[2048];
    muc_report *report = NULL;
    muc_model *model;
    muc_status found;

    open_model(s, context, &model);
    found = muc_compile(ctx, model, options, "/tmp/muc-shapes-never-written", &report);
    snprintf(message, sizeof(message), "%s", muc_error_message(ctx));
    muc_error_clear(ctx);
    muc_report_free(report);
    muc_model_close(model);
    if (found != status)
        fail_msg("%s: %s", muc_status_name(found), message);
    return message;
}

#define REFUSED(status, s, context, options, ...) \
    do { \
        static const char *const wanted_[] = { __VA_ARGS__ }; \
        const char *message_ = refusal(s, context, options, status); \
        for (size_t i_ = 0; i_ < sizeof(wanted_) / sizeof(wanted_[0]); i_++) \
            if (!strstr(message_, wanted_[i_])) \
                fail_msg("message '%s' lacks '%s'", message_, wanted_[i_]); \
        CHECK(strstr(message_, folder)); \
    } while (0)

static const muc_compile_options uthinker = { .target = "uthinker" };

/* machine.ini with one word of the machine changed */
static const char *machine(const char *key, uint32_t value)
{
    static const struct {
        const char *key;
        uint32_t value;
    } words[] = { { "isa", 1 },       { "ibuf0", 65536 },     { "ibuf1", 32768 },
                  { "wbuf0", 49152 }, { "wbuf1", 49152 },     { "gb", 262144 },
                  { "rows", 64 },     { "flash", 134217728 }, { "dram", 134217728 } };
    static char path[128];
    FILE *file = open_in_folder("machine.ini", "w");

    fprintf(file, "[machine]\nname = test\n");
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        fprintf(file, "%s = %u\n", words[i].key,
                strcmp(words[i].key, key) == 0 ? value : words[i].value);
    fclose(file);
    snprintf(path, sizeof(path), "%s/machine.ini", folder);
    return path;
}

static void biases_and_norms_of_heads_are_no_obstacle_but_the_cache_is(void **state)
{
    (void)state;
    REFUSED(MUC_NOFIT, &qwen2, 0, &uthinker, "DRAM needs", "a context of 32768",
            "--ctx-size 18688");
    REFUSED(MUC_NOFIT, &qwen3, 0, &uthinker, "DRAM needs", "a context of 40960", "--ctx-size 1856");
}

static void a_matrix_taller_than_a_buffer_names_the_least_buffer(void **state)
{
    shape tall = smol;

    (void)state;
    tall.ffn_width = 16416; /* 8 columns of 4.5 bits, of rows that no passes divide */
    REFUSED(MUC_NOFIT, &tall, 0, &uthinker, "8 columns of 'model.layers.0.mlp.down_proj.weight'",
            "need at least 73880 bytes, 24728 more than a W buffer has",
            "wbuf0 and wbuf1 of at least 73920");
    tall = smol;
    tall.width = 4096; /* 32 columns of gate; those of down then need more */
    tall.ffn_width = 5440;
    REFUSED(MUC_NOFIT, &tall, 0, &uthinker, "32 columns of 'model.layers.0.mlp.gate_proj.weight'",
            "wbuf0 and wbuf1 of at least 73728");
}

static void buffers_of_activations_name_their_least_size(void **state)
{
    muc_compile_options options = uthinker;

    (void)state;
    options.machine = machine("gb", 16384);
    REFUSED(MUC_NOFIT, &smol, 0, &options, "GB needs ", "for 1 tokens in one call",
            "must have gb of at least ");
    options.machine = machine("ibuf0", 512);
    REFUSED(MUC_NOFIT, &smol, 0, &options, "I0 needs ", "must have ibuf0 of at least ");
}

static bool fits(const shape *s, uint32_t context, uint32_t dram_bytes)
{
    muc_uthinker_machine small;
    muc_arena arena = { 0 };
    muc_status status;
    muc_model *model;
    muc_graph *graph;

    CHECK_OK(ctx, muc_uthinker_read_machine(ctx, &arena, muc_uthinker_default_machine(), &small));
    small.dram_bytes = dram_bytes;
    open_model(s, context, &model);
    CHECK_OK(ctx, muc_model_shapes(ctx, model, &graph));
    status = muc_uthinker_check_shapes(ctx, graph, &small, &muc_uthinker_defaults);
    muc_error_clear(ctx);
    muc_graph_free(graph);
    muc_model_close(model);
    muc_arena_free(&arena);
    return status == MUC_OK;
}

static void rows_in_parts_fit_a_buffer(void **state)
{
    shape tall = smol;

    (void)state;
    tall.layers = 2;
    tall.ffn_width = 16384;
    CHECK(fits(&tall, 0, 0));
}

static void dram_names_the_context_that_would_do(void **state)
{
    muc_compile_options options = uthinker;
    unsigned context;
    const char *hint;

    (void)state;
    options.machine = machine("dram", 10000000);
    hint = strstr(refusal(&smol, 0, &options, MUC_NOFIT), "--ctx-size ");
    assert_non_null(hint);
    CHECK_EQ(sscanf(hint, "--ctx-size %u would do", &context), 1);
    CHECK(context >= 64 && context < 2048);
    CHECK(fits(&smol, context, 10000000));
    /* and no more than that: the next chunk of 64 is too much again */
    REFUSED(MUC_NOFIT, &smol, context + 128, &options, "DRAM needs ");
    options.machine = machine("dram", 1000000);
    REFUSED(MUC_NOFIT, &smol, 64, &options, "DRAM needs ", "with dram = ");
}

static void flash_is_weighed_with_the_fewest_bits(void **state)
{
    muc_compile_options options = uthinker;

    (void)state;
    options.machine = machine("flash", 32 << 20);
    REFUSED(MUC_NOFIT, &smol, 0, &options, "flash needs ", "the weights take ",
            "must have flash of at least ");
}

/* ---- C for microcontrollers ---- */

static void flash_that_no_number_of_bits_fits_is_told(void **state)
{
    const muc_compile_options options = { .target = "mcu", .machine = "nrf52840" };

    (void)state;
    REFUSED(MUC_NOFIT, &qwen2, 512, &options, "constants take 49", "of flash of machine nRF52840",
            "no number of bits is few enough");
    REFUSED(MUC_NOFIT, &qwen3, 512, &options, "constants take 59", "no number of bits");
}

static const char *board(uint32_t flash_bytes, uint32_t sram_bytes)
{
    static char path[128];
    FILE *file = open_in_folder("machine.ini", "w");

    fprintf(file,
            "[machine]\nname = test\ncore = cortex-m7\nclock_mhz = 400\n"
            "[memory]\nname = flash\nbytes = %u\ncycles_per_kb = 100\nholds = weights\n"
            "[memory]\nname = SRAM\nbytes = %u\ncycles_per_kb = 10\nholds = arena state\n",
            flash_bytes, sram_bytes);
    fclose(file);
    snprintf(path, sizeof(path), "%s/machine.ini", folder);
    return path;
}

static void flash_names_the_weights_that_would_fit(void **state)
{
    muc_compile_options options = { .target = "mcu" };

    (void)state;
    options.machine = board(90000000, 0);
    REFUSED(MUC_NOFIT, &smol, 512, &options, "--quant bd4 would do");
    options.machine = board(60000000, 0);
    REFUSED(MUC_NOFIT, &smol, 512, &options, "muc compress --bits 2 would do");
    options.weights.codec = "bd4";
    REFUSED(MUC_NOFIT, &smol, 512, &options, "muc compress --bits 2 would do");
}

static void sram_names_the_context_that_would_do(void **state)
{
    muc_compile_options options = { .target = "mcu" };

    (void)state;
    options.machine = board(0, 8000000);
    REFUSED(MUC_NOFIT, &smol, 0, &options, "SRAM needs 24950848 bytes", "--ctx-size 6");
    options.machine = board(0, 100000);
    REFUSED(MUC_NOFIT, &smol, 0, &options, "SRAM needs ");
}

/* compiled for the context that a refusal named */
static void the_context_that_sram_names_does(void **state)
{
    muc_compile_options options = { .target = "mcu", .machine = board(0, 100000) };
    char out[128];
    muc_model_options how = { 0 };
    muc_report *report = NULL;
    unsigned context = 0;
    muc_model *model;
    const char *hint;

    (void)state;
    snprintf(out, sizeof(out), "%s/code", folder);
    CHECK_OK(ctx, muc_model_open(ctx, "models/rescue", NULL, &model));
    CHECK_EQ(muc_compile(ctx, model, &options, out, &report), MUC_NOFIT);
    muc_model_close(model);
    hint = strstr(muc_error_message(ctx), "--ctx-size ");
    assert_non_null(hint);
    CHECK_EQ(sscanf(hint, "--ctx-size %u would do", &context), 1);
    muc_error_clear(ctx);
    CHECK(context > 32 && context < 256);
    how.context = context;
    CHECK_OK(ctx, muc_model_open(ctx, "models/rescue", &how, &model));
    CHECK_OK(ctx, muc_compile(ctx, model, &options, out, &report));
    muc_report_free(report);
    muc_model_close(model);
}

/* ---- networks ---- */

/* 66 million weights */
static const char *const network = "graph large\n"
                                   "tensor x = input f32 [1, 64, 16, 16]\n"
                                   "tensor w = const f32 [256, 64, 3, 3] bytes 589824\n"
                                   "tensor v = const f32 [1000, 65536] bytes 262144000\n"
                                   "node c f32 [1, 256, 16, 16] = conv x, w pads=[1, 1, 1, 1]\n"
                                   "node r f32 [1, 256, 16, 16] = relu c\n"
                                   "node f f32 [1, 65536] = reshape r shape=[1, 65536]\n"
                                   "node y f32 [1, 1000] = linear f, v\n"
                                   "output y\n";

/* The network with constants that crash whoever reads them. */
static void open_network(muc_model *out)
{
    const muc_bytes text = { (const uint8_t *)network, strlen(network), "large.graph" };
    muc_graph *graph;

    CHECK_OK(ctx, muc_graph_parse(ctx, text, &graph));
    *out = (muc_model){ .kind = MUC_MODEL_NETWORK, .path = "large.graph", .network.graph = graph };
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        muc_tensor *tensor = &graph->tensors[i];

        if (tensor->kind != MUC_TENSOR_CONST)
            continue;
        tensor->data = mmap(NULL, (size_t)tensor->bytes, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        CHECK(tensor->data != MAP_FAILED);
    }
}

static void close_network(const muc_model *model)
{
    for (uint32_t i = 0; i < model->network.graph->tensor_count; i++) {
        const muc_tensor *tensor = &model->network.graph->tensors[i];

        if (tensor->kind == MUC_TENSOR_CONST)
            CHECK_EQ(munmap((void *)(uintptr_t)tensor->data, (size_t)tensor->bytes), 0);
    }
    muc_graph_free(model->network.graph);
}

/* in float32, and as int8 before a sample is read, where a chip of float32 has nothing to do */
static void check_network(const char *target, const char *machine_path, const char *real,
                          const char *integer)
{
    bool is_chip = strcmp(target, "cnnchip") == 0;
    const muc_compile_options options = { .target = target, .machine = machine_path };
    muc_report *report = NULL;
    muc_model model;

    open_network(&model);
    CHECK_FAILS(ctx, MUC_NOFIT, real,
                muc_compile(ctx, &model, &options, "/tmp/muc-shapes-never-written", &report));
    CHECK_FAILS(ctx, is_chip ? MUC_UNSUPPORTED : MUC_NOFIT, integer,
                muc_compile_precheck(ctx, &model, &options, NULL, "/tmp/muc-shapes-never-written"));
    close_network(&model);
}

static const char *chip(const char *element, const char *memory, uint32_t bytes)
{
    static char path[128];
    FILE *file = open_in_folder("chip.ini", "w");

    fprintf(file, "[machine]\nname = test\nelement = %s\npes = 0\nclock_mhz = 100\n%s = %u\n",
            element, memory, bytes);
    fclose(file);
    snprintf(path, sizeof(path), "%s/chip.ini", folder);
    return path;
}

static void a_network_of_66_million_weights_is_refused_by_its_shapes(void **state)
{
    (void)state;
    /* 4 or 1 byte for each of 256 * 64 * 9 + 1000 * 65536 weights, and for 1256 biases */
    check_network("mcu", board(1000000, 0), "constants take 262738848 bytes",
                  "constants take 6569");
    /* the convolution's result, 4 * 256 * 16 * 16, and lines of its input */
    check_network("mcu", board(0, 50000), "SRAM needs 267520 bytes", "SRAM needs ");
    /* the input has a border */
    check_network("cnnchip", chip("fp32", "frame_bytes", 50000), "FRAME needs 345088 bytes",
                  "nothing of it can run on the chip");
    check_network("cnnchip", chip("fp32", "filter_bytes", 50000), "partial sums of 262733824 bytes",
                  "--element int8");
    check_network("cnnchip", chip("fp16", "filter_bytes", 50000), "partial sums of 131366912 bytes",
                  "--element int8");
    check_network("cnnchip", chip("fp32", "program_bytes", 100), "the program has 100",
                  "--element int8");
}

static void int8_of_66_million_weights_is_refused_by_its_shapes(void **state)
{
    muc_compile_options options = { .target = "cnnchip" };
    muc_model model;

    (void)state;
    open_network(&model);
    options.machine = chip("int8", "frame_bytes", 50000);
    CHECK_FAILS(ctx, MUC_NOFIT, "FRAME needs 86272 bytes",
                muc_compile_precheck(ctx, &model, &options, NULL, "/tmp/muc-shapes-never-written"));
    options.machine = chip("int8", "filter_bytes", 50000);
    CHECK_FAILS(ctx, MUC_NOFIT, "filter_bytes of 65698528 would do", /* 12 bytes a channel */
                muc_compile_precheck(ctx, &model, &options, NULL, "/tmp/muc-shapes-never-written"));
    close_network(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define SHAPES_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        SHAPES_TEST(biases_and_norms_of_heads_are_no_obstacle_but_the_cache_is),
        SHAPES_TEST(a_matrix_taller_than_a_buffer_names_the_least_buffer),
        SHAPES_TEST(buffers_of_activations_name_their_least_size),
        SHAPES_TEST(rows_in_parts_fit_a_buffer),
        SHAPES_TEST(dram_names_the_context_that_would_do),
        SHAPES_TEST(flash_is_weighed_with_the_fewest_bits),
        SHAPES_TEST(flash_that_no_number_of_bits_fits_is_told),
        SHAPES_TEST(flash_names_the_weights_that_would_fit),
        SHAPES_TEST(sram_names_the_context_that_would_do),
        SHAPES_TEST(the_context_that_sram_names_does),
        SHAPES_TEST(a_network_of_66_million_weights_is_refused_by_its_shapes),
        SHAPES_TEST(int8_of_66_million_weights_is_refused_by_its_shapes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
