/* engine.h - one sequence of tokens being continued, whatever computes it: a checkpoint by the
 * reference in float32, a program by the runtime on the simulated machine. */
#ifndef MUC_ENGINE_H
#define MUC_ENGINE_H

#include "muc/machine.h"
#include "muc/report.h"
#include "run/opened_model.h"

enum { MUC_ENGINE_MOST_TOKENS = 64 }; /* in one feed */

typedef struct muc_engine muc_engine;

typedef struct muc_engine_facts {
    const char *arithmetic;       /* as reports name it */
    uint32_t vocabulary, context; /* tokens, positions */
} muc_engine_facts;

/* What a kind of model brings; see the functions below. */
typedef struct muc_engine_kind {
    void (*facts)(const muc_model *model, muc_engine_facts *out);
    muc_status (*open)(muc_engine *engine); /* makes state */
    muc_status (*feed)(muc_engine *engine, const uint32_t *tokens, uint32_t count, bool all,
                       const float **logits);
    void (*reset)(muc_engine *engine);
    void (*close)(muc_engine *engine); /* state may be NULL */
    /* Part i of the memory that holds what was fed up to the engine's position; false: there are
     * fewer. With the same position the sizes are the same. */
    bool (*memory)(muc_engine *engine, size_t i, void **data, size_t *bytes);
    void (*seek)(muc_engine *engine, uint32_t position); /* NULL: the state knows no position */
    /* Adds to a report how long the machine takes for a prompt of so many tokens and so many steps
     * after it, each of one token, drawn or the likeliest one: keys machine, machine_prompt,
     * machine_steps; nothing if no machine is given or known. NULL: there is no machine. */
    muc_status (*clock)(muc_context *ctx, const muc_model *model, const char *machine,
                        uint32_t prompt, uint32_t steps, bool drawn, muc_report *report);
    /* muc_verify_machine; NULL: no machine of anyone's runs such models. */
    muc_status (*verify_machine)(muc_context *ctx, const muc_model *model,
                                 const muc_machine *machine, const char *prompt, muc_report **out);
} muc_engine_kind;

extern const muc_engine_kind muc_engine_float; /* a checkpoint, by the reference in float32 */

struct muc_engine {
    const muc_engine_kind *kind;
    muc_context *ctx;
    const muc_model *model;
    muc_engine_facts facts;
    uint32_t position; /* tokens fed so far */
    void *state;
};

/* Fails with MUC_UNSUPPORTED for a model that cannot be run as it is (a .bdt file). */
muc_status muc_engine_facts_of(muc_context *ctx, const muc_model *model, muc_engine_facts *out);

/* Starts an empty sequence. Several engines may share a model; each is used by one thread. */
muc_status muc_engine_new(muc_context *ctx, const muc_model *model, muc_engine **out);
void muc_engine_reset(muc_engine *engine); /* the sequence is empty again */
/* The sequence goes on after so many tokens: those before them must have been fed, or their memory
 * be put there. */
void muc_engine_seek(muc_engine *engine, uint32_t position);
void muc_engine_free(muc_engine *engine); /* NULL is fine */

/* Appends 1..MUC_ENGINE_MOST_TOKENS tokens, each below vocabulary, and gives the logits after each
 * (all: [count][vocabulary]) or after the last ([vocabulary]); valid until the next feed. Fails
 * with MUC_USAGE if the context is full. */
muc_status muc_engine_feed(muc_engine *engine, const uint32_t *tokens, uint32_t count, bool all,
                           const float **logits);

/* Runs body for every i in 0..count-1, on as many threads as the context has, each with engines of
 * its own, reset before each i: one for model and, unless it is NULL, one for reference, which
 * must have the same vocabulary. step names the work for the progress hook. */
typedef muc_status muc_engine_body(void *arg, muc_engine *engine, muc_engine *reference, size_t i);
muc_status muc_engines_for(muc_context *ctx, const muc_model *model, const muc_model *reference,
                           size_t count, const char *step, muc_engine_body *body, void *arg);

#endif
