/* loop_windows.h - what the loops over windows of loop_windows.c are told, and the lines that they
 * are made of. */
#ifndef MUC_MCU_WINDOWS_H
#define MUC_MCU_WINDOWS_H

#include <inttypes.h>
#include <stdio.h>

#include "targets/mcu/program/c_text.h"

enum { MOST_SPATIAL = 3 };

/* A convolution or pool: dimensions by their meaning. */
typedef struct window {
    muc_mcu_lowering *l;
    const muc_node *node;
    const muc_tensor *x, *y;
    uint32_t spatial;        /* dimensions */
    uint32_t channel, first; /* dimensions of x and y: channels, and the first spatial one */
    const int64_t *strides, *dilations, *pads;
    uint32_t kernel[MOST_SPATIAL];
    bool planes;     /* the text is that of a piece: some channels, which come first */
    bool tiled;      /* the text is that of a piece: some rows o0, some channels */
    bool by_channel; /* x has as many channels as y, each for its own */
} window;

static inline int64_t item(const int64_t *items, uint32_t i, int64_t fallback)
{
    return items ? items[i] : fallback;
}

static inline window window_of(muc_mcu_lowering *l, const muc_node *node)
{
    bool last = muc_node_integer_or(node, MUC_KEY_CHANNELS_LAST, 0) != 0;
    window w = {
        .l = l,
        .node = node,
        .x = muc_mcu_input(l, node, 0),
        .y = muc_mcu_output(l, node, 0),
        .strides = muc_node_integers(node, MUC_KEY_STRIDES),
        .dilations = muc_node_integers(node, MUC_KEY_DILATIONS),
        .pads = muc_node_integers(node, MUC_KEY_PADS),
    };

    w.spatial = w.x->rank - 2;
    w.channel = last ? w.x->rank - 1 : 1;
    w.first = last ? 1 : 2;
    return w;
}

static inline bool is_static_window(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);

    return x->rank >= 3 && x->rank <= 2 + MOST_SPATIAL && muc_mcu_is_static(l, x) &&
           muc_mcu_is_static(l, muc_mcu_output(l, node, 0));
}

static inline void loop(const window *w, unsigned *depth, const char *counter, uint32_t i,
                        uint32_t extent)
{
    char name[16];

    snprintf(name, sizeof(name), "%s%u", counter, i);
    muc_mcu_indent(&w->l->text, (*depth)++);
    muc_text_add(&w->l->text, "for (uint32_t %s = 0; %s < %" PRIu32 "u; %s++) {\n", name, name,
                 extent, name);
}

static inline void line(const window *w, unsigned depth, const char *format, ...) MUC_PRINTF(3, 4);

static inline void line(const window *w, unsigned depth, const char *format, ...)
{
    va_list args;

    muc_mcu_indent(&w->l->text, depth);
    va_start(args, format);
    muc_text_add_args(&w->l->text, format, args);
    va_end(args);
    muc_text_add(&w->l->text, "\n");
}

static inline void close_all(const window *w, unsigned depth, unsigned until)
{
    while (depth > until)
        line(w, --depth, "}");
}

#endif
