/* Chains of random int8 layers as generated code that runs them patch by patch: the bits of ref,
 * with not a byte around the arena touched.
 */
#include "mcu_network.h"
#include "mcu_small_machine.h"
#include "operators.h"

enum { CHAINS = 24, MOST_TENSORS = 12 };

typedef struct image {
    char name[16];
    uint32_t h, w, c;
} image;

typedef struct writer {
    mcu_batch *batch;
    muc_text text;
    image images[MOST_TENSORS]; /* the input, then what each layer makes */
    uint32_t count;
} writer;

static uint32_t choose(writer *w, uint32_t least, uint32_t most)
{
    return least + mcu_random(w->batch) % (most - least + 1);
}

/* images of one quantization, so that pools may follow */
static void write_type(muc_text *text, const image *x)
{
    muc_text_add(text, "%s i8 [1, %u, %u, %u] scale 0.5 zero 3", x->name, x->h, x->w, x->c);
}

static image *new_image(writer *w, uint32_t height, uint32_t width, uint32_t channels)
{
    image *x = &w->images[w->count];

    snprintf(x->name, sizeof(x->name), "t%u", w->count++);
    x->h = height;
    x->w = width;
    x->c = channels;
    return x;
}

static void write_values(writer *w, const char *name, uint32_t channels, uint32_t kh, uint32_t kw,
                         uint32_t depth)
{
    muc_text *text = &w->text;

    muc_text_add(text, "tensor %s = const i8 [%u, %u, %u, %u] scale ", name, channels, kh, kw,
                 depth);
    for (uint32_t i = 0; i < channels; i++)
        muc_text_add(text, "%s0.0%02u", i ? ", " : "", choose(w, 1, 30));
    muc_text_add(text, " zero ");
    for (uint32_t i = 0; i < channels; i++)
        muc_text_add(text, "%s0", i ? ", " : "");
    muc_text_add(text, " axis 0 values ");
    for (uint32_t i = 0; i < channels * kh * kw * depth; i++)
        muc_text_add(text, "%s%d", i ? ", " : "", (int)choose(w, 0, 255) - 128);
    muc_text_add(text, "\n");
}

/* a window along one direction; what it makes of `in`, or 0 if it does not fit */
typedef struct window {
    uint32_t kernel, stride, dilation, before, after;
} window;

static window random_window(writer *w, bool dilates)
{
    window d = { .kernel = choose(w, 1, 4), .stride = choose(w, 1, 2), .dilation = 1 };

    if (dilates && choose(w, 0, 5) == 0)
        d.dilation = 2;
    d.before = choose(w, 0, d.kernel - 1);
    d.after = choose(w, 0, d.kernel - 1);
    return d;
}

static uint32_t made_of(const window *d, uint32_t in)
{
    uint32_t padded = in + d->before + d->after, reach = (d->kernel - 1) * d->dilation + 1;

    return padded < reach ? 0 : (padded - reach) / d->stride + 1;
}

static void write_window(muc_text *text, const window *r, const window *c, bool dilates)
{
    muc_text_add(text, " channels_last=1 strides=[%u, %u] pads=[%u, %u, %u, %u]", r->stride,
                 c->stride, r->before, c->before, r->after, c->after);
    if (dilates)
        muc_text_add(text, " dilations=[%u, %u]", r->dilation, c->dilation);
}

static bool write_conv(writer *w, const image *x)
{
    window r = random_window(w, true), c = random_window(w, true);
    bool is_depthwise = choose(w, 0, 2) == 0, is_pointwise = !is_depthwise && choose(w, 0, 1);
    uint32_t channels = is_depthwise ? x->c : choose(w, 1, 12);
    image *y;
    char weights[16];

    if (is_pointwise)
        r = c = (window){ .kernel = 1, .stride = 1, .dilation = 1 };
    if (!made_of(&r, x->h) || !made_of(&c, x->w))
        return false;
    snprintf(weights, sizeof(weights), "w%u", w->count);
    write_values(w, weights, channels, r.kernel, c.kernel, is_depthwise ? 1 : x->c);
    y = new_image(w, made_of(&r, x->h), made_of(&c, x->w), channels);
    muc_text_add(&w->text, "node ");
    write_type(&w->text, y);
    muc_text_add(&w->text, " = conv %s, %s groups=%u clamp_min=%d", x->name, weights,
                 is_depthwise ? x->c : 1, (int)choose(w, 0, 1) * 131 - 128);
    write_window(&w->text, &r, &c, true);
    muc_text_add(&w->text, "\n");
    return true;
}

static bool write_pool(writer *w, const image *x)
{
    window r = random_window(w, false), c = random_window(w, false);
    image *y;

    if (!made_of(&r, x->h) || !made_of(&c, x->w))
        return false;
    y = new_image(w, made_of(&r, x->h), made_of(&c, x->w), x->c);
    muc_text_add(&w->text, "node ");
    write_type(&w->text, y);
    muc_text_add(&w->text, " = %s %s kernel=[%u, %u]",
                 choose(w, 0, 1) ? "max_pool" : "average_pool", x->name, r.kernel, c.kernel);
    write_window(&w->text, &r, &c, false);
    muc_text_add(&w->text, "\n");
    return true;
}

/* of the last image and any earlier one of its shape, on either side */
static bool write_add(writer *w, const image *x)
{
    const image *sides[2] = { x, NULL };
    uint32_t swap = choose(w, 0, 1);
    image *y;

    for (uint32_t i = 0; i + 1 < w->count; i++)
        if (w->images[i].h == x->h && w->images[i].w == x->w && w->images[i].c == x->c)
            sides[1] = &w->images[i];
    if (!sides[1])
        return false;
    y = new_image(w, x->h, x->w, x->c);
    muc_text_add(&w->text, "node ");
    write_type(&w->text, y);
    muc_text_add(&w->text, " = %s %s, %s\n", choose(w, 0, 3) ? "add" : "sub", sides[swap]->name,
                 sides[1 - swap]->name);
    return true;
}

/* large images first, few bytes in the end: what patches are for */
static muc_graph *random_chain(mcu_batch *batch)
{
    writer w = { .batch = batch };
    uint32_t layers = choose(&w, 2, 8);
    muc_graph *graph;
    image *x;

    muc_text_add(&w.text, "graph chain\ntensor ");
    x = new_image(&w, choose(&w, 5, 24), choose(&w, 5, 24), choose(&w, 1, 4));
    muc_text_add(&w.text, "%s = input i8 [1, %u, %u, %u] scale 0.5 zero 3\n", x->name, x->h, x->w,
                 x->c);
    for (uint32_t tries = 0; w.count <= layers && tries < 50; tries++) {
        const image *last = &w.images[w.count - 1];
        uint32_t kind = choose(&w, 0, 9);

        if (kind < 2)
            write_add(&w, last);
        else if (kind < 4)
            write_pool(&w, last);
        else
            write_conv(&w, last);
    }
    muc_text_add(&w.text, "output %s\n", w.images[w.count - 1].name);
    graph = graph_of(batch->ctx, w.text.data);
    muc_text_free(&w.text);
    return graph;
}

static void patches_compute_what_ref_computes(void **state)
{
    static const char *const machines[] = { "host", "stm32f746" };
    mcu_batch batch = mcu_batch_new();
    size_t patched = 0, overlapping = 0;

    (void)state;
    batch.choices.patches = MUC_MCU_PATCHES_LEAST;
    for (size_t i = 0; i < CHAINS; i++)
        mcu_batch_add(&batch, random_chain(&batch), machines[i % MUC_COUNT(machines)]);
    mcu_batch_build(&batch, "cc -fsanitize=undefined -fno-sanitize-recover=undefined");
    for (size_t i = 0; i < CHAINS; i++) {
        const muc_mcu_program *program = &batch.networks[i].build->program;

        for (uint32_t r = 0; r < 2; r++)
            mcu_run(&batch, i, 0);
        if (program->loop.turns == 0)
            continue;
        patched++;
        assert_true(program->plan.peak < program->loop.plain_peak);
        for (uint32_t s = program->loop.first; s < program->loop.end; s++)
            overlapping += program->steps[s].overlap_count > 0;
    }
    print_message("%zu of %d chains run by patches\n", patched, CHAINS);
    assert_true(patched >= CHAINS / 3 && overlapping > 0);
    mcu_batch_free(&batch);
}

/* bytes that a program says its DMA moves in a run */
static uint64_t bytes_moved(const muc_mcu_program *program)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < program->step_count; i++)
        if (program->steps[i].tiles)
            bytes += program->steps[i].tiles->in_bytes + program->steps[i].tiles->out_bytes;
    return bytes;
}

static void layers_fused_in_a_small_memory_compute_what_ref_computes(void **state)
{
    static const unsigned sizes[] = { 1024, 1536, 3072 };
    mcu_batch batch = mcu_batch_new();
    size_t fused = 0, in_turns = 0;
    const uint64_t *moved;

    (void)state;
    for (size_t i = 0; i < CHAINS; i++) {
        char machine[64];

        batch.choices.fuse = i % 4 ? MUC_MCU_FUSE_LEAST : MUC_MCU_FUSE_AUTO;
        write_machine(machine, "rv32imc", sizes[i % MUC_COUNT(sizes)]);
        mcu_batch_add(&batch, random_chain(&batch), machine);
        unlink(machine);
    }
    mcu_batch_build(&batch, "cc -fsanitize=undefined -fno-sanitize-recover=undefined");
    *(const void **)&moved = dlsym(batch.library, "mur_hal_host_bytes");
    CHECK(moved != NULL);
    for (size_t i = 0; i < CHAINS; i++) {
        const muc_mcu_program *program = &batch.networks[i].build->program;
        uint64_t before = *moved;

        mcu_run(&batch, i, 0);
        CHECK_EQ(*moved - before, bytes_moved(program));
        for (uint32_t c = 0; c < program->chain_count; c++) {
            fused += program->chains[c].end - program->chains[c].first;
            in_turns += program->chains[c].turns > 1;
        }
    }
    print_message("%zu layers fused, %zu chains in turns\n", fused, in_turns);
    assert_true(fused >= CHAINS && in_turns >= CHAINS / 8);
    mcu_batch_free(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patches_compute_what_ref_computes),
        cmocka_unit_test(layers_fused_in_a_small_memory_compute_what_ref_computes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
