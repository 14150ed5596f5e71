/* engine_kinds.h - the ways to compute logits. */
#ifndef MUC_ENGINE_KINDS_H
#define MUC_ENGINE_KINDS_H

#include "driver/engine.h"

extern const muc_engine_kind muc_engine_float;   /* a checkpoint, by the reference */
extern const muc_engine_kind muc_engine_machine; /* a program, on the simulated machine */

#endif
