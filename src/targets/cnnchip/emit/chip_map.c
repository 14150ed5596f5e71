/* chip_map.c - map.json: every address and layer, for people, for the master and for muc itself. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/half.h"
#include "targets/cnnchip/emit/chip_build.h"

static void add_key(muc_text *text, const char *key, const char *value)
{
    muc_text_add_json(text, key);
    muc_text_add(text, ": ");
    muc_text_add_json(text, value);
}

/* the base of each address: insn fields know */
static void add_view(const muc_cnnchip_lowering *l, const muc_cnnchip_view *view, muc_text *text)
{
    muc_cnnchip_view root = muc_cnnchip_root(l, *view);
    const muc_cnnchip_storage *s = &l->storages[root.storage];
    const muc_cnnchip_border *b = &s->border;
    /* a padded tensor reaches into the border: it has none of its own */
    bool is_first = root.y0 == 0 && root.x0 == 0 && view->h <= s->h && view->w <= s->w;
    uint32_t rows, pitch, address = muc_cnnchip_locate(l, view, &rows, &pitch);

    muc_text_add(text,
                 "\"address\": %" PRIu32 ", \"c\": %" PRIu32 ", \"h\": %" PRIu32 ", \"w\": %" PRIu32
                 ", \"rows\": %" PRIu32 ", \"pitch\": %" PRIu32,
                 address, view->c, view->h, view->w, rows, pitch);
    if (is_first && (b->t || b->b || b->l || b->r))
        muc_text_add(text,
                     ", \"border\": [%" PRIu32 ", %" PRIu32 ", %" PRIu32 ", %" PRIu32
                     "], \"border_value\": %" PRIu32,
                     b->t, b->b, b->l, b->r, b->value);
}

/* where a tensor is, as the members of an object */
static void add_place(const muc_cnnchip_lowering *l, uint32_t tensor, muc_text *text)
{
    const muc_cnnchip_value *v = &l->values[tensor];
    const muc_tensor *t = muc_cnnchip_tensor(l, tensor);

    add_key(text, "tensor", t->name);
    muc_text_add(text, ", ");
    add_key(text, "type", muc_dtype_get(t->dtype)->name);
    muc_text_add(text, ", \"dims\": [");
    for (uint32_t i = 0; i < t->rank; i++)
        muc_text_add(text, "%s%" PRIu32, i ? ", " : "", muc_cnnchip_dim(l, tensor, i));
    muc_text_add(text, "], ");
    if (t->kind == MUC_TENSOR_CONST) {
        muc_text_add(text, "\"at\": \"host.bin\", \"offset\": %" PRIu64 ", \"bytes\": %" PRIu64,
                     muc_cnnchip_host_data(l, tensor, NULL), t->bytes);
        return;
    }
    if (!v->on_chip) {
        add_key(text, "at", "host");
        return;
    }
    muc_text_add(
        text, "\"at\": \"frame\", \"channels_last\": %s, \"scale\": %.9g, \"zero\": %" PRId32 ", ",
        v->last ? "true" : "false", (double)v->scale, v->zero);
    add_view(l, &v->view, text);
}

/* ---- what comes from what ---- */

/* Layers and host steps are boxes; a box has the nodes that were fused into it. */
typedef struct sources {
    uint32_t *box;  /* [node_count]: number of the layer or host step that ends with it; 0: none */
    uint32_t *told; /* [tensor_count]: the last box that named the tensor */
    bool *wanted;   /* [node_count] */
} sources;

static bool open_sources(const muc_cnnchip_lowering *l, sources *s)
{
    s->box = muc_calloc(l->graph->node_count + (size_t)1, sizeof(*s->box));
    s->told = muc_calloc(l->graph->tensor_count + (size_t)1, sizeof(*s->told));
    s->wanted = muc_calloc(l->graph->node_count + (size_t)1, sizeof(*s->wanted));
    if (!s->box || !s->told || !s->wanted)
        return false;
    for (uint32_t i = 0; i < l->layer_count; i++)
        s->box[muc_cnnchip_tensor(l, l->layers[i].tensor)->producer] = i + 1;
    for (uint32_t h = 0; h < l->host_count; h++)
        for (uint32_t i = 0; i < l->hosts[h].node_count; i++)
            s->box[l->hosts[h].nodes[i]] = l->layer_count + h + 1;
    return true;
}

static void close_sources(sources *s)
{
    free(s->box);
    free(s->told);
    free(s->wanted);
}

/* Names the inputs and the results of other boxes that box `own` is made of, whose last node is
 * `last`: up the graph from the wanted nodes. */
static void add_from(const muc_cnnchip_lowering *l, sources *s, uint32_t own, uint32_t last,
                     muc_text *text)
{
    const char *between = "";

    muc_text_add(text, "\"from\": [");
    for (uint32_t n = last + 1; n-- > 0;) {
        const muc_node *node = &l->graph->nodes[n];

        for (uint32_t k = 0; s->wanted[n] && k < node->input_count; k++) {
            const muc_tensor *t;

            if (node->inputs[k] == MUC_NO_ID || s->told[node->inputs[k]] == own)
                continue;
            t = muc_cnnchip_tensor(l, node->inputs[k]);
            s->told[node->inputs[k]] = own;
            if (t->producer != MUC_NO_ID && (!s->box[t->producer] || s->box[t->producer] == own)) {
                s->wanted[t->producer] = true;
            } else if (t->kind != MUC_TENSOR_CONST) {
                muc_text_add(text, "%s", between);
                muc_text_add_json(text, t->name);
                between = ", ";
            }
        }
        s->wanted[n] = false;
    }
    muc_text_add(text, "]");
}

/* ---- inputs and outputs ---- */

/* the next port of the program, if the tensor is in FRAME */
static void add_port(const muc_cnnchip_lowering *l, uint32_t tensor, uint32_t *port, muc_text *text)
{
    if (l->values[tensor].on_chip)
        muc_text_add(text, "\"port\": %" PRIu32 ", ", (*port)++);
}

/* returns how many ports these are */
static uint32_t add_inputs(const muc_cnnchip_lowering *l, muc_text *text)
{
    uint32_t count = 0, port = 0;

    muc_text_add(text, "  \"inputs\": [");
    for (uint32_t i = 0; i < l->storage_count; i++) {
        const muc_cnnchip_storage *s = &l->storages[i];

        if (s->port == MUC_NO_ID)
            continue;
        muc_text_add(text, "%s    { ", count++ ? ",\n" : "\n");
        add_key(text, "name", muc_cnnchip_tensor(l, s->port)->name);
        muc_text_add(text, ", ");
        add_port(l, s->port_as, &port, text);
        add_place(l, s->port_as, text);
        muc_text_add(text, " }");
    }
    for (uint32_t i = 0; i < l->graph->tensor_count; i++) {
        if (l->graph->tensors[i].kind != MUC_TENSOR_INPUT || l->values[i].on_chip)
            continue;
        muc_text_add(text, "%s    { ", count++ ? ",\n" : "\n");
        add_key(text, "name", l->graph->tensors[i].name);
        muc_text_add(text, ", ");
        add_place(l, i, text);
        muc_text_add(text, " }");
    }
    muc_text_add(text, "\n  ],\n  \"outputs\": [");
    for (uint32_t i = 0; i < l->graph->output_count; i++) {
        muc_text_add(text, "%s    { ", i ? ",\n" : "\n");
        add_key(text, "name", muc_cnnchip_tensor(l, l->graph->outputs[i])->name);
        muc_text_add(text, ", ");
        add_port(l, l->graph->outputs[i], &port, text);
        add_place(l, l->graph->outputs[i], text);
        muc_text_add(text, " }");
    }
    muc_text_add(text, "\n  ],\n");
    return port;
}

/* ---- layers ---- */

/* the largest number of parts that an instruction of the layer names */
static void add_step(const muc_cnnchip_lowering *l, const muc_cnnchip_step *step, muc_text *text)
{
    static const char *const kinds[] = { "conv", "maxpool", "dense", "add", "host" };

    muc_text_add(text, "{ ");
    add_key(text, "kind", kinds[step->kind]);
    muc_text_add(text, ", \"instructions\": [%" PRIu32 ", %" PRIu32 "], \"input\": { ",
                 step->first_insn, step->end_insn);
    add_view(l, &step->in, text);
    if (step->two && !step->second.data) {
        muc_text_add(text, " }, \"second\": { ");
        add_view(l, &step->in1, text);
    }
    muc_text_add(text, " }, \"output\": { ");
    add_view(l, &step->out, text);
    muc_text_add(text, " }");
    if (step->weights_bytes)
        muc_text_add(text, ", \"weights\": %" PRIu64 ", \"weights_bytes\": %" PRIu64,
                     step->weights_at, step->weights_bytes);
    if (step->v1)
        muc_text_add(text, ", \"dsp\": %" PRIu64, l->weights_bytes + step->dsp_at);
    muc_text_add(text, " }");
}

static uint64_t least_cycles(const muc_cnnchip_lowering *l, uint32_t layer)
{
    uint64_t cycles = 0;

    for (uint32_t i = 0; i < l->step_count; i++)
        if (l->steps[i].kind != MUC_CNNCHIP_STEP_HOST && l->steps[i].layer == layer)
            cycles += l->steps[i].least_cycles;
    return cycles;
}

static void add_layer(const muc_cnnchip_lowering *l, sources *s, uint32_t layer, uint32_t *step,
                      muc_text *text)
{
    const muc_cnnchip_layer *it = &l->layers[layer];
    uint32_t node = muc_cnnchip_tensor(l, it->tensor)->producer;
    bool first = true;

    muc_text_add(text, "%s    { \"layer\": %" PRIu32 ", ", layer ? ",\n" : "\n", layer + 1);
    add_key(text, "op", muc_op_get(it->op)->name);
    muc_text_add(text, ", ");
    add_place(l, it->tensor, text);
    muc_text_add(text, ",\n      \"cycles_bound\": %" PRIu64 ", ", least_cycles(l, layer));
    s->wanted[node] = true;
    add_from(l, s, layer + 1, node, text);
    muc_text_add(text, ",\n      \"steps\": [");
    for (; *step < l->step_count; ++*step) {
        const muc_cnnchip_step *own = &l->steps[*step];

        if (own->kind == MUC_CNNCHIP_STEP_HOST)
            continue;
        if (own->layer != layer)
            break;
        muc_text_add(text, first ? "\n        " : ",\n        ");
        add_step(l, own, text);
        first = false;
    }
    muc_text_add(text, "] }");
}

static void add_hosts(const muc_cnnchip_lowering *l, sources *s, uint32_t port, muc_text *text)
{
    for (uint32_t h = 0; h < l->host_count; h++) {
        const muc_cnnchip_host *host = &l->hosts[h];
        uint32_t count = 0;

        muc_text_add(text,
                     "%s    { \"code\": %" PRIu32 ", \"graph\": \"host_%" PRIu32
                     ".graph\", \"step\": %" PRIu32 ",\n      \"operators\": [",
                     h ? ",\n" : "\n", h + 1, h + 1, host->step);
        for (uint32_t i = 0; i < host->node_count; i++) {
            muc_text_add(text, i ? ", " : "");
            muc_text_add_json(text, muc_op_get(l->graph->nodes[host->nodes[i]].op)->name);
        }
        muc_text_add(text, "],\n      ");
        for (uint32_t i = 0; i < host->node_count; i++)
            s->wanted[host->nodes[i]] = true;
        add_from(l, s, l->layer_count + h + 1, host->nodes[host->node_count - 1], text);
        muc_text_add(text, ",\n      \"reads\": [");
        for (uint32_t i = 0; i < host->node_count; i++) {
            const muc_node *node = &l->graph->nodes[host->nodes[i]];

            for (uint32_t k = 0; k < node->input_count; k++) {
                if (!muc_cnnchip_host_reads(l, h, i, k))
                    continue;
                muc_text_add(text, "%s        { ", count++ ? ",\n" : "\n");
                add_port(l, node->inputs[k], &port, text);
                add_place(l, node->inputs[k], text);
                muc_text_add(text, " }");
            }
        }
        muc_text_add(text, "],\n      \"writes\": [");
        count = 0;
        for (uint32_t i = 0; i < host->node_count; i++) {
            const muc_node *node = &l->graph->nodes[host->nodes[i]];

            for (uint32_t k = 0; k < node->output_count; k++) {
                muc_text_add(text, "%s        { ", count++ ? ",\n" : "\n");
                add_port(l, node->outputs[k], &port, text);
                add_place(l, node->outputs[k], text);
                muc_text_add(text, " }");
            }
        }
        muc_text_add(text, "] }");
    }
}

static void add_buffers(const muc_cnnchip_lowering *l, muc_text *text)
{
    for (size_t i = 0; i < l->plan.count; i++) {
        const muc_plan_buffer *b = &l->plan.buffers[i];

        muc_text_add(text, "%s    { ", i ? ",\n" : "\n");
        add_key(text, "name", b->name);
        muc_text_add(text,
                     ", \"address\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"first\": %" PRIu32
                     ", \"last\": %" PRIu32 " }",
                     b->address, b->bytes, b->first, b->last);
    }
}

static void add_memories(const muc_cnnchip_build *build, muc_text *text)
{
    const muc_cnnchip_lowering *l = &build->lowering;
    const muc_cnnchip_program *p = &build->program;

    muc_text_add(text,
                 "  \"frame\": { \"bytes\": %" PRIu32 ", \"limit\": %" PRIu64
                 ", \"bound\": %" PRIu64 ", \"image_bytes\": %" PRIu32 " },\n",
                 p->frame_bytes, build->machine.frame_bytes, l->plan.least, p->frame_image_bytes);
    muc_text_add(text,
                 "  \"filter\": { \"bytes\": %" PRIu32 ", \"limit\": %" PRIu64
                 ", \"image_bytes\": %" PRIu32 ", \"weights_bytes\": %" PRIu64
                 ", \"parameters\": %" PRIu64 ", \"parameters_bytes\": %" PRIu64
                 ", \"scratch\": %" PRIu32 ", \"scratch_bytes\": %" PRIu64 " },\n",
                 p->filter_bytes, build->machine.filter_bytes, p->filter_image_bytes,
                 l->weights_bytes, l->weights_bytes, l->params_bytes, p->filter_image_bytes,
                 l->scratch_bytes);
}

void muc_cnnchip_print_map(const muc_cnnchip_build *build, muc_text *text)
{
    const muc_cnnchip_lowering *l = &build->lowering;
    uint32_t step = 0, ports;
    sources s = { 0 };

    if (!open_sources(l, &s)) {
        text->failed = true;
        close_sources(&s);
        return;
    }
    muc_text_add(text, "{\n  \"target\": \"cnnchip\",\n  ");
    add_key(text, "name", build->name);
    muc_text_add(text, ",\n  ");
    if (build->options) {
        add_key(text, "options", build->options);
        muc_text_add(text, ",\n  ");
    }
    muc_text_add(text, "\"fingerprint\": %" PRIu32 ",\n  ", build->fingerprint);
    add_key(text, "machine", build->machine.name);
    muc_text_add(text, ",\n  ");
    add_key(text, "element", muc_cnnchip_element_name(build->machine.element));
    muc_text_add(text,
                 ",\n  \"pes\": %" PRIu32 ",\n  \"bus_bytes\": %" PRIu32
                 ",\n  \"clock_mhz\": %" PRIu32 ",\n  \"instructions\": %" PRIu32
                 ",\n  \"cycles\": %" PRIu64 ",\n  \"cycles_bound\": %" PRIu64 ",\n",
                 build->machine.pes, build->machine.bus_bytes, build->machine.clock_mhz,
                 build->program.insn_count, l->cycles, l->least_cycles);
    muc_text_add(text, "  \"hex_bits\": %" PRIu32 ",\n  \"inputs_in_frame\": %s,\n",
                 build->hex_bits, build->inputs_in_frame ? "true" : "false");
    add_memories(build, text);
    ports = add_inputs(l, text);
    muc_text_add(text, "  \"layers\": [");
    for (uint32_t i = 0; i < l->layer_count; i++)
        add_layer(l, &s, i, &step, text);
    muc_text_add(text, "\n  ],\n  \"host_steps\": [");
    add_hosts(l, &s, ports, text);
    close_sources(&s);
    muc_text_add(text, "\n  ],\n  \"buffers\": [");
    add_buffers(l, text);
    muc_text_add(text, "\n  ]\n}\n");
}
