/* Random networks: what passes and generated code make of them computes what the reference makes of
 * the graph as it was written, real numbers within rounding and int8 bit for bit.
 *
 *     test_mcu_random [NETWORKS [SEED]]
 */
#include "targets/target.h"
#include "run/network_int8.h"
#include "mcu_network.h"
#include "operators.h"

enum { NETWORKS = 24, MOST_TENSORS = 16, STEPS = 7, SAMPLES = 8, MOST_WEIGHTS = 64 };

/* An image or images, [n, c, h, w]. */
typedef struct value {
    char name[8];
    unsigned dims[4];
} value;

/* A graph being written. */
typedef struct writer {
    muc_text text;
    value values[MOST_TENSORS];
    unsigned count;
    uint64_t seed;
} writer;

static unsigned pick(writer *w, unsigned least, unsigned most)
{
    w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
    return least + (unsigned)(w->seed >> 33) % (most - least + 1);
}

static unsigned elements_of(const value *v)
{
    return v->dims[0] * v->dims[1] * v->dims[2] * v->dims[3];
}

static value *next_value(writer *w)
{
    value *v = &w->values[w->count];

    snprintf(v->name, sizeof(v->name), "v%u", w->count++);
    return v;
}

static void add_constant(writer *w, const char *kind, unsigned number, const char *shape,
                         unsigned count)
{
    muc_text_add(&w->text, "tensor %s%u = const f32 [%s] values ", kind, number, shape);
    for (unsigned i = 0; i < count; i++)
        muc_text_add(&w->text, "%s%g", i ? ", " : "", ((double)pick(w, 0, 200) - 100) / 64);
    muc_text_add(&w->text, "\n");
}

static void begin_node(writer *w, const value *v)
{
    muc_text_add(&w->text, "node %s f32 [%u, %u, %u, %u] = ", v->name, v->dims[0], v->dims[1],
                 v->dims[2], v->dims[3]);
}

static unsigned window(unsigned extent, unsigned kernel, unsigned stride, unsigned pads)
{
    return (extent + pads - kernel) / stride + 1;
}

static void add_conv(writer *w, const value *x)
{
    bool deep = pick(w, 0, 2) == 0;
    unsigned kernel = pick(w, 1, 3), stride = pick(w, 1, 2), pad;
    unsigned in = deep ? 1 : x->dims[1], out = deep ? x->dims[1] : pick(w, 1, 6);
    unsigned number = w->count;
    char shape[48];
    value *v;

    while (kernel > 1 && (out * in * kernel * kernel > MOST_WEIGHTS || kernel > x->dims[2] ||
                          kernel > x->dims[3]))
        kernel--;
    pad = kernel > 1 ? 1 : 0;
    while (out * in * kernel * kernel > MOST_WEIGHTS && !deep && out > 1)
        out--;
    snprintf(shape, sizeof(shape), "%u, %u, %u, %u", out, in, kernel, kernel);
    add_constant(w, "w", number, shape, out * in * kernel * kernel);
    snprintf(shape, sizeof(shape), "%u", out);
    add_constant(w, "b", number, shape, out);
    v = next_value(w);
    v->dims[0] = x->dims[0];
    v->dims[1] = out;
    v->dims[2] = window(x->dims[2], kernel, stride, pad);
    v->dims[3] = window(x->dims[3], kernel, stride, 2 * pad);
    begin_node(w, v);
    muc_text_add(&w->text, "conv %s, w%u, b%u strides=[%u, %u] pads=[%u, %u, 0, %u] groups=%u\n",
                 x->name, number, number, stride, stride, pad, pad, pad, deep ? out : 1);
}

static void add_pool(writer *w, const value *x)
{
    value *v = next_value(w);

    *v = (value){ .dims = { x->dims[0], x->dims[1], window(x->dims[2], 2, 2, 1),
                            window(x->dims[3], 2, 1, 0) } };
    snprintf(v->name, sizeof(v->name), "v%u", w->count - 1);
    begin_node(w, v);
    muc_text_add(&w->text, "%s %s kernel=[2, 2] strides=[2, 1] pads=[1, 0, 0, 0]\n",
                 pick(w, 0, 1) ? "max_pool" : "average_pool", x->name);
}

static void add_function(writer *w, const value *x)
{
    static const char *const functions[] = { "relu %s",       "leaky_relu %s alpha=0.1",
                                             "sigmoid %s",    "tanh %s",
                                             "hard_swish %s", "silu %s",
                                             "gelu %s",       "hard_sigmoid %s alpha=0.2 beta=0.5",
                                             "elu %s alpha=1" };
    value *v = next_value(w);
    char form[64];

    memcpy(v->dims, x->dims, sizeof(v->dims));
    begin_node(w, v);
    snprintf(form, sizeof(form), "%s", functions[pick(w, 0, MUC_COUNT(functions) - 1)]);
    *strchr(form, '%') = '\0';
    muc_text_add(&w->text, "%s%s%s\n", form, x->name, form + strlen(form) + 2);
}

/* a norm over the last dimension, as it is or in steps; a function in steps */
static void add_steps(writer *w, const value *x)
{
    unsigned kind = pick(w, 0, 2), number = w->count;
    value v = *x;
    char shape[32];

    if (kind < 2) {
        snprintf(shape, sizeof(shape), "%u", x->dims[3]);
        add_constant(w, "g", number, shape, x->dims[3]);
        add_constant(w, "h", number, shape, x->dims[3]);
    }
    muc_text_add(&w->text,
                 "tensor k%u = const f32 [] values 1.5\ntensor l%u = const f32 [] values 0.01\n",
                 number, number);
    if (kind == 2) {
        snprintf(v.name, sizeof(v.name), "f%u", number);
        begin_node(w, &v);
        muc_text_add(&w->text, "tanh %s\n", x->name);
        snprintf(v.name, sizeof(v.name), "a%u", number);
        begin_node(w, &v);
        muc_text_add(&w->text, "add f%u, k%u\n", number, number);
    }
    *next_value(w) = v;
    snprintf(w->values[number].name, sizeof(v.name), "v%u", number);
    begin_node(w, &w->values[number]);
    if (kind == 2)
        muc_text_add(&w->text, "mul a%u, %s\n", number, x->name);
    else if (kind == 1)
        muc_text_add(&w->text, "layer_norm %s, g%u, h%u axis=3 epsilon=0.01\n", x->name, number,
                     number);
    else
        muc_text_add(&w->text, "rmsnorm %s, g%u axis=3 epsilon=0.01\n", x->name, number);
}

/* a channel's factor, or another value of the same shape */
static void add_pair(writer *w, const value *x)
{
    const value *other = &w->values[pick(w, 0, w->count - 1)];
    bool same = memcmp(other->dims, x->dims, sizeof(x->dims)) == 0;
    unsigned number = w->count;
    const char *op = pick(w, 0, 1) ? "add" : "mul";
    char shape[32], name[16];
    value *v;

    snprintf(name, sizeof(name), "%s", same ? other->name : "");
    if (!same) {
        snprintf(shape, sizeof(shape), "%u, 1, 1", x->dims[1]);
        add_constant(w, "s", number, shape, x->dims[1]);
        snprintf(name, sizeof(name), "s%u", number);
    }
    v = next_value(w);
    memcpy(v->dims, x->dims, sizeof(v->dims));
    begin_node(w, v);
    muc_text_add(&w->text, "%s %s, %s\n", op, x->name, name);
}

static void add_move(writer *w, const value *x)
{
    unsigned kind = pick(w, 0, 3);
    value *v = next_value(w);

    memcpy(v->dims, x->dims, sizeof(v->dims));
    if (kind == 0)
        v->dims[1] *= 2;
    else if (kind == 1) {
        v->dims[2] = x->dims[3];
        v->dims[3] = x->dims[2];
    } else if (kind == 2)
        v->dims[3] += 3;
    else
        v->dims[2] = (x->dims[2] + 1) / 2;
    begin_node(w, v);
    if (kind == 0)
        muc_text_add(&w->text, "concat %s, %s axis=1\n", x->name, x->name);
    else if (kind == 1)
        muc_text_add(&w->text, "transpose %s perm=[0, 1, 3, 2]\n", x->name);
    else if (kind == 2)
        muc_text_add(&w->text, "pad %s pads=[0, 0, 0, 1, 0, 0, 0, 2]\n", x->name);
    else
        muc_text_add(&w->text, "slice %s axes=[2] starts=[0] sizes=[%u] steps=[2]\n", x->name,
                     v->dims[2]);
}

/* a network that begins with a convolution and ends with a mean or as it is */
static void write_network(writer *w)
{
    value *x = next_value(w);

    x->dims[0] = 1;
    x->dims[1] = pick(w, 1, 4);
    x->dims[2] = pick(w, 3, 8);
    x->dims[3] = pick(w, 3, 8);
    snprintf(x->name, sizeof(x->name), "x");
    muc_text_add(&w->text, "graph random\ntensor x = input f32 [1, %u, %u, %u]\n", x->dims[1],
                 x->dims[2], x->dims[3]);
    add_conv(w, x);
    for (unsigned i = 0; i < STEPS; i++) {
        const value from = w->values[pick(w, 0, 3) ? w->count - 1 : pick(w, 0, w->count - 1)];

        if (elements_of(&from) > 4000 || from.dims[1] > MOST_WEIGHTS / 2)
            continue;
        switch (pick(w, 0, 6)) {
        case 0:
        case 1:
            add_conv(w, &from);
            break;
        case 2:
            add_function(w, &from);
            break;
        case 3:
            add_pair(w, &from);
            break;
        case 4:
            add_move(w, &from);
            break;
        case 5:
            add_steps(w, &from);
            break;
        default:
            if (from.dims[2] > 1 && from.dims[3] > 1)
                add_pool(w, &from);
        }
    }
    muc_text_add(&w->text, "output %s\n", w->values[w->count - 1].name);
}

/* ---- comparison ---- */

/* the network as written, int8 if asked */
static muc_graph *graph_as_written(muc_context *ctx, const writer *w, bool is_int8)
{
    muc_graph *graph = graph_of(ctx, w->text.data);
    uint64_t each = elements_of(&w->values[0]), state = 9;
    muc_tensor_view array = { .name = "x", .file = "test", .dtype = MUC_F32, .rank = 2 };
    float *samples;

    if (!is_int8)
        return graph;
    samples = malloc(SAMPLES * each * sizeof(*samples));
    for (size_t i = 0; i < SAMPLES * each; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        samples[i] = (float)((double)(state >> 40) / 4194304 - 2);
    }
    array.dims[0] = SAMPLES;
    array.dims[1] = each;
    array.elements = SAMPLES * each;
    array.data = (const uint8_t *)samples;
    array.bytes = array.elements * sizeof(*samples);
    CHECK_OK(ctx, muc_network_to_int8(ctx, graph, &array, 1, NULL));
    free(samples);
    return graph;
}

static const void *bytes_by_name(const muc_ref *ref, const muc_graph *graph, const char *name)
{
    uint32_t id = muc_graph_find(graph, name);
    muc_ref_view view;

    if (id == MUC_NO_ID || !muc_ref_get(ref, id, &view))
        fail_msg("the graph as written has no '%s'", name);
    return view.data;
}

static void compare_with_written(mcu_batch *batch, size_t i, muc_graph *written, uint64_t elements)
{
    const uint32_t bindings[MUC_EXPR_MAX_INPUTS] = { 0 };
    const muc_mcu_program *program = &batch->networks[i].build->program;
    float *x = malloc(elements * sizeof(*x));
    const muc_ref_input input = { "x", x, elements * sizeof(*x) };
    mcu_arena arena = mcu_arena_new(batch, i);
    muc_ref *ref;

    mcu_fill(batch, MUC_F32, x, input.bytes);
    CHECK_OK(batch->ctx, muc_ref_open(batch->ctx, written, &ref));
    CHECK_OK(batch->ctx, muc_ref_run(ref, bindings, &input, 1));
    for (uint32_t p = 0; p < program->inputs.count; p++) {
        const muc_mcu_value *v = &program->values[program->inputs.values[p]];

        memcpy(arena.in[p], bytes_by_name(ref, written, v->tensor->name), v->bytes);
    }
    arena.run(arena.arena);
    for (uint32_t p = 0; p < program->outputs.count; p++) {
        const muc_mcu_value *v = &program->values[program->outputs.values[p]];

        mcu_compare(i, v->tensor->name, v->tensor->dtype,
                    bytes_by_name(ref, written, v->tensor->name), arena.out[p], v->bytes, 1e-4);
    }
    muc_ref_close(ref);
    mcu_arena_free(&arena);
    free(x);
}

static void try_networks(size_t count, uint64_t seed)
{
    mcu_batch batch = mcu_batch_new();
    writer *writers = calloc(count, sizeof(*writers));

    for (size_t i = 0; i < count; i++) {
        muc_graph *graph;

        writers[i].seed = seed + i;
        write_network(&writers[i]);
        graph = graph_as_written(batch.ctx, &writers[i], (seed + i) % 2 == 0);
        CHECK_OK(batch.ctx, muc_prepare_mcu(batch.ctx, graph));
        mcu_batch_add(&batch, graph, "host");
    }
    mcu_batch_build(&batch, "cc");
    for (size_t i = 0; i < count; i++) {
        muc_graph *written = graph_as_written(batch.ctx, &writers[i], (seed + i) % 2 == 0);

        print_message("seed %llu\n", (unsigned long long)(seed + i));
        compare_with_written(&batch, i, written, elements_of(&writers[i].values[0]));
        muc_graph_free(written);
        muc_text_free(&writers[i].text);
    }
    free(writers);
    mcu_batch_free(&batch);
}

static size_t network_count = NETWORKS;
static uint64_t first_seed = 1;

static void random_networks_compute_what_was_written(void **state)
{
    (void)state;
    for (size_t done = 0; done < network_count; done += NETWORKS)
        try_networks(NETWORKS, first_seed + done);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_networks_compute_what_was_written),
    };

    if (argc > 1)
        network_count = strtoul(argv[1], NULL, 10);
    if (argc > 2)
        first_seed = strtoull(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
