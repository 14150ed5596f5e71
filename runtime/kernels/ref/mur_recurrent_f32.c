/* mur_recurrent_f32.c - RNN, GRU and LSTM of mur_recurrent.h in binary32, one sequence after
 * the other, so that scratch holds one state. */
#include "mur_recurrent.h"

#include <string.h>

#include "mur_real.h"

/* One direction of one sequence at work. */
typedef struct cell {
    const mur_recurrent_f32 *layer;
    const float *w, *r, *bias, *peephole; /* of the direction; the last two may be NULL */
    float *h, *c;                         /* [hidden] */
    float *sums, *again;                  /* [gates][hidden]: of x, of h */
} cell;

static float dot(const float *a, const float *b, uint32_t count)
{
    float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    uint32_t i = 0;

    for (; i + 4 <= count; i += 4) {
        s0 += a[i] * b[i];
        s1 += a[i + 1] * b[i + 1];
        s2 += a[i + 2] * b[i + 2];
        s3 += a[i + 3] * b[i + 3];
    }
    for (; i < count; i++)
        s0 += a[i] * b[i];
    return (s0 + s1) + (s2 + s3);
}

/* out[j] = rows[j] . x + bias[j] */
static void multiply(const float *rows, const float *bias, const float *x, uint32_t columns,
                     uint32_t count, float *out)
{
    for (uint32_t j = 0; j < count; j++, rows += columns)
        out[j] = dot(rows, x, columns) + (bias ? bias[j] : 0.0f);
}

static float sum_of(const cell *s, uint32_t gate, uint32_t j)
{
    uint32_t at = gate * s->layer->hidden + j;

    return s->sums[at] + s->again[at];
}

static void step_rnn(const cell *s)
{
    for (uint32_t j = 0; j < s->layer->hidden; j++) {
        float sum = sum_of(s, 0, j);

        s->h[j] = !s->layer->relu ? mur_real_tanh(sum) : sum > 0.0f ? sum : 0.0f;
    }
}

static void step_gru(const cell *s)
{
    uint32_t n = s->layer->hidden;

    if (s->layer->linear_before_reset) {
        for (uint32_t j = 0; j < n; j++)
            s->again[2 * n + j] *= mur_real_sigmoid(sum_of(s, 1, j));
    } else {
        for (uint32_t j = 0; j < n; j++)
            s->c[j] = mur_real_sigmoid(sum_of(s, 1, j)) * s->h[j];
        multiply(s->r + 2 * n * n, s->bias ? s->bias + 5 * n : NULL, s->c, n, n, s->again + 2 * n);
    }
    for (uint32_t j = 0; j < n; j++) {
        float z = mur_real_sigmoid(sum_of(s, 0, j));

        s->h[j] = (1.0f - z) * mur_real_tanh(sum_of(s, 2, j)) + z * s->h[j];
    }
}

static float peep(const cell *s, uint32_t gate, uint32_t j)
{
    return s->peephole ? s->peephole[gate * s->layer->hidden + j] * s->c[j] : 0.0f;
}

static void step_lstm(const cell *s)
{
    const float clip = s->layer->cell_clip;

    for (uint32_t j = 0; j < s->layer->hidden; j++) {
        float in = mur_real_sigmoid(sum_of(s, 0, j) + peep(s, 0, j));
        float forget = mur_real_sigmoid(sum_of(s, 2, j) + peep(s, 2, j));

        s->c[j] = forget * s->c[j] + in * mur_real_tanh(sum_of(s, 3, j));
        if (clip > 0.0f)
            s->c[j] = s->c[j] > clip ? clip : s->c[j] < -clip ? -clip : s->c[j];
        s->h[j] = mur_real_sigmoid(sum_of(s, 1, j) + peep(s, 1, j)) * mur_real_tanh(s->c[j]);
    }
}

static void step(const cell *s, const float *x)
{
    const mur_recurrent_f32 *layer = s->layer;
    uint32_t rows = layer->gates * layer->hidden;

    multiply(s->w, s->bias, x, layer->inputs, rows, s->sums);
    multiply(s->r, s->bias ? s->bias + rows : NULL, s->h, layer->hidden, rows, s->again);
    if (layer->gates == MUR_RNN)
        step_rnn(s);
    else if (layer->gates == MUR_GRU)
        step_gru(s);
    else
        step_lstm(s);
}

static void copy(float *to, const float *from, uint32_t count)
{
    if (!to)
        return;
    if (from)
        memcpy(to, from, count * sizeof(*to));
    else
        memset(to, 0, count * sizeof(*to));
}

/* sequence n of the batch in a direction, with the direction's operands in *s */
static void run_sequence(const cell *s, const mur_recurrent_operands *o, uint32_t direction,
                         uint32_t n)
{
    const mur_recurrent_f32 *layer = s->layer;
    uint32_t hidden = layer->hidden, steps = layer->steps, length = steps;
    uint32_t state =
        layer->batch_first ? n * layer->directions + direction : direction * layer->batch + n;

    if (o->lengths && (uint32_t)o->lengths[n] < steps)
        length = (uint32_t)o->lengths[n];
    if (o->lengths && o->lengths[n] < 0)
        length = 0;
    copy(s->h, o->h ? o->h + state * hidden : NULL, hidden);
    copy(s->c, o->c ? o->c + state * hidden : NULL, hidden);
    for (uint32_t i = 0; i < steps; i++) {
        int backwards = direction == 1 || layer->backwards;
        uint32_t t = i < length && backwards ? length - 1 - i : i;
        uint32_t row = layer->batch_first ? n * steps + t : t * layer->batch + n;
        uint32_t out = layer->batch_first ? row * layer->directions + direction
                                          : (t * layer->directions + direction) * layer->batch + n;

        if (i < length)
            step(s, o->x + row * layer->inputs);
        copy(o->y ? o->y + out * hidden : NULL, i < length ? s->h : NULL, hidden);
    }
    copy(o->last_h ? o->last_h + state * hidden : NULL, s->h, hidden);
    copy(o->last_c ? o->last_c + state * hidden : NULL, s->c, hidden);
}

void mur_recurrent_f32_run(const mur_recurrent_f32 *layer, const mur_recurrent_operands *operands,
                           void *scratch)
{
    uint32_t hidden = layer->hidden, rows = layer->gates * hidden;
    cell s;

    s.layer = layer;
    s.h = scratch;
    s.c = s.h + hidden;
    s.sums = s.c + hidden;
    s.again = s.sums + rows;
    for (uint32_t d = 0; d < layer->directions; d++) {
        s.w = operands->w + d * rows * layer->inputs;
        s.r = operands->r + d * rows * hidden;
        s.bias = operands->bias ? operands->bias + d * 2 * rows : NULL;
        s.peephole = operands->peephole ? operands->peephole + d * 3 * hidden : NULL;
        for (uint32_t n = 0; n < layer->batch; n++)
            run_sequence(&s, operands, d, n);
    }
}
