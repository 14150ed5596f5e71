/* hf_layers.h - what a family's config.json says of angles, windows and factors. */
#ifndef MUC_HF_LAYERS_H
#define MUC_HF_LAYERS_H

#include <jansson.h>

#include "formats/checkpoint.h"

typedef enum muc_hf_windows {
    MUC_HF_NO_LAYER,     /* "sliding_window" must reach over the context */
    MUC_HF_EVERY_LAYER,  /* Mistral */
    MUC_HF_LATE_LAYERS,  /* from "max_window_layers" on, if "use_sliding_window" (Qwen) */
    MUC_HF_STILL_LAYERS, /* that do not turn, if "use_sliding_window" (SmolLM 3) */
    MUC_HF_EVEN_LAYERS,  /* Gemma 2 */
    MUC_HF_PATTERN,      /* all but each "sliding_window_pattern"th (Gemma 3) */
    MUC_HF_NAMED_LAYERS, /* "local" ones of "attention_layers" or "attention_types" (GPT-Neo) */
} muc_hf_windows;

/* Fills config's RoPE, layer_views and factors from the object root of the file of this name; its
 * family and sizes are there. A value that cannot be served is MUC_UNSUPPORTED, one that cannot be
 * meant MUC_MALFORMED. */
muc_status muc_hf_read_layers(muc_context *ctx, const char *name, const json_t *root,
                              muc_hf_windows windows, muc_checkpoint *checkpoint);

#endif
