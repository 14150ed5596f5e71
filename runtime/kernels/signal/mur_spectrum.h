/* mur_spectrum.h - a frame's spectrum and its bands, in the arithmetic of the source that includes
 * this file. That defines the types NUMBER (samples, sines), WEIGHT, SUM (of a band), FRONT (the
 * front end), and
 *   HALF(x)       x, or half of it where numbers must not grow
 *   TIMES(x, w)   x * w for a sine w, likewise
 *   sample_at     a sample behind the window
 *   put_energy    the magnitude of a point, or its square, in the place of the point
 *   energy_at     what was put
 */

typedef struct turn {
    NUMBER c, s; /* cos and sin */
} turn;

/* the turn by index / (4 quarter), below a half */
static inline turn turn_of(const NUMBER *sines, uint32_t quarter, uint32_t index)
{
    turn t;

    if (index <= quarter) {
        t.c = sines[quarter - index];
        t.s = sines[index];
    } else {
        t.c = -sines[index - quarter];
        t.s = sines[2 * quarter - index];
    }
    return t;
}

/* *a, *b become a + t, a - t, halved */
static inline void meet(NUMBER *a, NUMBER *b, NUMBER t_real, NUMBER t_imaginary)
{
    NUMBER real = HALF(a[0]), imaginary = HALF(a[1]);

    a[0] = real + t_real;
    a[1] = imaginary + t_imaginary;
    b[0] = real - t_real;
    b[1] = imaginary - t_imaginary;
}

/* Pairs of samples as complex numbers, 0 beyond the window, in the order of reversed bits. */
static void load(const FRONT *front, const int16_t *samples, int shift, NUMBER *z)
{
    uint32_t count = front->shape.fft / 2u, window = front->shape.window, place = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t bit = count / 2;

        z[2 * place] = 2 * i < window ? sample_at(front, samples, 2 * i, shift) : 0;
        z[2 * place + 1] = 2 * i + 1 < window ? sample_at(front, samples, 2 * i + 1, shift) : 0;
        for (; place & bit; bit /= 2)
            place ^= bit;
        place |= bit;
    }
}

/* The transform of count complex numbers, divided by count where HALF halves. */
static void transform(NUMBER *z, uint32_t count, const NUMBER *sines)
{
    for (uint32_t half = 1, stride = count; half < count; half *= 2, stride /= 2) {
        for (uint32_t i = 0; i < count; i += 2 * half) { /* no turn */
            NUMBER *a = z + 2 * i, *b = a + 2 * half;

            meet(a, b, HALF(b[0]), HALF(b[1]));
        }
        for (uint32_t k = 1; k < half; k++) {
            turn w = turn_of(sines, count / 2, k * stride);

            for (uint32_t i = k; i < count; i += 2 * half) {
                NUMBER *a = z + 2 * i, *b = a + 2 * half;

                meet(a, b, TIMES(b[0], w.c) + TIMES(b[1], w.s),
                     TIMES(b[1], w.c) - TIMES(b[0], w.s));
            }
        }
    }
}

static inline int is_wanted(const mur_front_end_shape *shape, uint32_t point)
{
    return point >= shape->begin && point < shape->end;
}

/* Of the transform of pairs, the energies of those points of the samples' own spectrum that bands
 * want: its points k and count - k follow from these two of the pairs. Of twice the spectrum,
 * or half where HALF halves. */
static void put_energies(NUMBER *z, uint32_t count, const NUMBER *sines,
                         const mur_front_end_shape *shape)
{
    uint32_t power = shape->power;
    NUMBER sum = HALF(z[0]) + HALF(z[1]), difference = HALF(z[0]) - HALF(z[1]);

    put_energy(z, HALF(sum) + HALF(sum), 0, power);
    put_energy(z + 2 * count, HALF(difference) + HALF(difference), 0, power);
    for (uint32_t k = 1; k <= count / 2; k++) {
        NUMBER *a = z + 2 * k, *b = z + 2 * (count - k);
        NUMBER even_real = HALF(a[0]) + HALF(b[0]), even_imaginary = HALF(a[1]) - HALF(b[1]);
        NUMBER odd_real = HALF(a[1]) + HALF(b[1]), odd_imaginary = HALF(b[0]) - HALF(a[0]);
        turn w = turn_of(sines, count / 2, k);
        NUMBER real = TIMES(odd_real, w.c) + TIMES(odd_imaginary, w.s);
        NUMBER imaginary = TIMES(odd_imaginary, w.c) - TIMES(odd_real, w.s);

        if (is_wanted(shape, k))
            put_energy(a, HALF(even_real) + real, HALF(even_imaginary) + imaginary, power);
        if (is_wanted(shape, count - k))
            put_energy(b, HALF(even_real) - real, imaginary - HALF(even_imaginary), power);
    }
}

/* The sum of a band's bins by their weights; *weights moves behind them. */
static SUM band_sum(const NUMBER *z, uint32_t first, uint32_t bins, const WEIGHT **weights)
{
    const WEIGHT *weight = *weights;
    SUM sum = 0;

    for (uint32_t i = 0; i < bins; i++)
        sum += energy_at(z + 2 * (first + i)) * weight[i];
    *weights = weight + bins;
    return sum;
}
