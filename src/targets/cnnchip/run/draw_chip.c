/* draw_chip.c - the picture of what the CNN chip and its master compute from what. */
#include <string.h>

#include "targets/cnnchip/run/chip_folder.h"
#include "report/figures.h"
#include "report/report_builder.h"

typedef struct picture {
    muc_context *ctx;
    muc_chip *chip;
    const json_t *layers, *hosts;
    muc_graph_box *boxes;
    const json_t **items;           /* of each box: its object in map.json; NULL: an input */
    uint32_t box_count, host_count; /* so far */
    muc_graph_arrow *arrows;
    size_t arrow_count;
} picture;

static bool writes(const json_t *host, const char *tensor)
{
    const json_t *list = json_object_get(host, "writes");

    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(muc_member_text(json_array_get(list, i), "tensor"), tensor) == 0)
            return true;
    return false;
}

/* the box whose result the tensor is; box_count: none of those so far */
static uint32_t box_of(const picture *p, const char *tensor)
{
    uint32_t i = 0;

    while (i < p->box_count && strcmp(p->boxes[i].name, tensor) != 0 &&
           !(p->items[i] && writes(p->items[i], tensor)))
        i++;
    return i;
}

static void add_arrows(picture *p, const json_t *from, uint32_t to)
{
    for (size_t i = 0; i < json_array_size(from); i++) {
        const char *name = json_string_value(json_array_get(from, i));
        uint32_t box = name ? box_of(p, name) : p->box_count;

        if (box < to)
            p->arrows[p->arrow_count++] = (muc_graph_arrow){ box, to };
    }
}

/* one colour an operator; 0 is the inputs', 1 the master's */
static uint32_t kind_of(const picture *p, const char *op)
{
    uint32_t most = 1;

    for (uint32_t i = 0; i < p->box_count; i++) {
        if (p->items[i] && strcmp(muc_member_text(p->items[i], "op"), op) == 0)
            return p->boxes[i].kind;
        most = p->boxes[i].kind > most ? p->boxes[i].kind : most;
    }
    return most + 1;
}

static muc_status add_host(picture *p)
{
    const json_t *host = json_array_get(p->hosts, p->host_count++);
    const json_t *operators = json_object_get(host, "operators");
    muc_graph_box *box = &p->boxes[p->box_count];
    muc_text list = { 0 };
    muc_status status;

    for (size_t i = 0; i < json_array_size(operators); i++) {
        const char *op = json_string_value(json_array_get(operators, i));

        muc_text_add(&list, "%s%s", i ? ", " : "", op ? op : "");
    }
    *box = (muc_graph_box){ .tip = "by the master", .kind = 1 };
    status = muc_arena_format(p->ctx, &p->chip->arena, &box->name, "host step %u", p->host_count);
    if (status == MUC_OK)
        status = muc_arena_format(p->ctx, &p->chip->arena, &box->detail, "%s",
                                  list.data ? list.data : "");
    muc_text_free(&list);
    MUC_TRY(status);
    p->items[p->box_count] = host;
    add_arrows(p, json_object_get(host, "from"), p->box_count++);
    return MUC_OK;
}

/* Host steps stand before the first layer that reads of them: those up to the last that this one
 * reads of. */
static muc_status add_hosts_before(picture *p, const json_t *from)
{
    size_t end = p->host_count;

    for (size_t h = end; h < json_array_size(p->hosts); h++)
        for (size_t i = 0; i < json_array_size(from); i++) {
            const char *name = json_string_value(json_array_get(from, i));

            if (name && writes(json_array_get(p->hosts, h), name))
                end = h + 1;
        }
    while (p->host_count < end)
        MUC_TRY(add_host(p));
    return MUC_OK;
}

static muc_status add_layer(picture *p, const json_t *layer)
{
    const json_t *from = json_object_get(layer, "from"), *dims = json_object_get(layer, "dims");
    muc_graph_box *box;
    muc_text shape = { 0 };
    muc_status status;

    MUC_TRY(add_hosts_before(p, from));
    box = &p->boxes[p->box_count];
    *box = (muc_graph_box){ .name = muc_member_text(layer, "tensor"),
                            .tip = muc_member_text(layer, "op"),
                            .kind = kind_of(p, muc_member_text(layer, "op")) };
    for (size_t i = 0; i < json_array_size(dims); i++)
        muc_text_add(&shape, "%s%lld", i ? ", " : "",
                     (long long)json_integer_value(json_array_get(dims, i)));
    status = muc_arena_format(p->ctx, &p->chip->arena, &box->detail, "[%s]",
                              shape.data ? shape.data : "");
    muc_text_free(&shape);
    MUC_TRY(status);
    p->items[p->box_count] = layer;
    add_arrows(p, from, p->box_count++);
    return MUC_OK;
}

static size_t from_count(const json_t *list)
{
    size_t count = 0;

    for (size_t i = 0; i < json_array_size(list); i++)
        count += json_array_size(json_object_get(json_array_get(list, i), "from"));
    return count;
}

muc_status muc_chip_draw_graph(muc_context *ctx, muc_chip *chip, muc_report *report)
{
    picture p = { .ctx = ctx,
                  .chip = chip,
                  .layers = json_object_get(chip->map, "layers"),
                  .hosts = json_object_get(chip->map, "host_steps") };
    size_t boxes = chip->input_count + json_array_size(p.layers) + json_array_size(p.hosts);

    if (boxes > MUC_GRAPH_MOST_BOXES)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(ctx, &chip->arena, boxes + 1, &p.boxes));
    MUC_TRY(MUC_ARENA_NEW(ctx, &chip->arena, boxes + 1, &p.items));
    MUC_TRY(MUC_ARENA_NEW(ctx, &chip->arena, from_count(p.layers) + from_count(p.hosts) + 1,
                          &p.arrows));
    for (size_t i = 0; i < chip->input_count; i++)
        p.boxes[p.box_count++] =
            (muc_graph_box){ .name = chip->inputs[i].name ? chip->inputs[i].name : "",
                             .detail = "input" };
    for (size_t i = 0; i < json_array_size(p.layers); i++)
        MUC_TRY(add_layer(&p, json_array_get(p.layers, i)));
    while (p.host_count < json_array_size(p.hosts))
        MUC_TRY(add_host(&p));
    muc_report_add_graph(report, &(muc_graph_figure){ .title = "graph",
                                                      .boxes = p.boxes,
                                                      .box_count = p.box_count,
                                                      .arrows = p.arrows,
                                                      .arrow_count = p.arrow_count });
    return MUC_OK;
}
