/* Audio front ends: features beside a second implementation in binary64, with transforms as sums
 * and filters from their definitions; integers beside floats; queues; recordings. */
#include <math.h>

#include "audio/audio_front_end.h"
#include "chance.h"
#include "check.h"
#include "formats/wav/wav.h"
#include "mur_ring.h"

static const double turn = 6.283185307179586;

/* every kind of band, logarithm, transform and window, and sizes from the least to the greatest */
static const char *const descriptions[] = {
    "",
    "window=512,hop=160,bands=80,low=0,high=8000,mel=slaney,norm=slaney,power=2,log=log10",
    "window=400,hop=160,fft=512,bands=23,mel=htk,power=2,cepstra=13,dct=ortho",
    "window=255,hop=85,shape=hamming,mel=htk,norm=slaney,log=db,least=1e-8,cepstra=0",
    "window=17,hop=16,fft=64,bands=5,low=0,high=8000,mel=slaney,cepstra=5,dct=ortho,shape=ones",
    "window=64,hop=32,bands=8,low=0,high=8000,power=2,cepstra=0,log=db,least=1e-12",
    "window=1024,hop=512,bands=64,low=0,high=8000,mel=onnx,power=2,cepstra=0",
    "rate=48000,window=4000,hop=4000,fft=4096,bands=128,low=0,high=24000,mel=htk,cepstra=20",
    "window=480,hop=160,least=1,power=2,cepstra=0",
};

enum { SAMPLES = 16000, MOST_FEATURES = 512 };

/* a chirp with noise, of an amplitude */
static void make_sound(int16_t *samples, double amplitude)
{
    for (uint32_t i = 0; i < SAMPLES; i++) {
        double t = i / 16000.0, noise = (random_u32() % 2001 / 1000.0 - 1) * 0.1;

        samples[i] = (int16_t)lrint(amplitude * (0.9 * sin(turn * (200 + 3000 * t) * t) + noise));
    }
}

/* ---- the definitions ---- */

static double mel(const muc_front_end *f, double hertz)
{
    if (f->mel != MUC_FRONT_mel_slaney)
        return 1127.01048033416 * log1p(hertz / 700);
    return hertz < 1000 ? 3 * hertz / 200 : 15 + 27 * log(hertz / 1000) / log(6.4);
}

static double hertz(const muc_front_end *f, double m)
{
    if (f->mel != MUC_FRONT_mel_slaney)
        return 700 * expm1(m / 1127.01048033416);
    return m < 15 ? 200 * m / 3 : 1000 * pow(6.4, (m - 15) / 27);
}

/* the weight of a frequency, in points of the spectrum, in a band */
static double weight(const muc_front_end *f, uint32_t band, uint32_t point)
{
    double x = (double)point * f->rate / f->fft, edges[3], corners[3];
    double area = f->norm == MUC_FRONT_norm_slaney ? 0 : 1;
    uint32_t parts = f->bands + (f->mel == MUC_FRONT_mel_onnx ? 2 : 1);

    for (uint32_t i = 0; i < 3; i++) {
        double m = mel(f, f->low) + (mel(f, f->high) - mel(f, f->low)) * (band + i) / parts;

        corners[i] = edges[i] = hertz(f, m);
        if (f->mel == MUC_FRONT_mel_tensorflow)
            edges[i] = m;
        if (f->mel == MUC_FRONT_mel_onnx)
            edges[i] = floor(edges[i] * (f->fft + 1) / f->rate);
    }
    if (f->mel == MUC_FRONT_mel_tensorflow && point == 0)
        return 0;
    if (f->mel == MUC_FRONT_mel_tensorflow)
        x = mel(f, x);
    if (f->mel == MUC_FRONT_mel_onnx)
        x = point;
    area = area > 0 ? 1 : (corners[2] - corners[0]) / 2;
    if (x > edges[0] && x < edges[1])
        return (x - edges[0]) / (edges[1] - edges[0]) / area;
    if (x >= edges[1] && x < edges[2])
        return (edges[2] - x) / (edges[2] - edges[1]) / area;
    return f->mel == MUC_FRONT_mel_onnx && x == edges[1] ? 1 / area : 0;
}

static double energy(const muc_front_end *f, const int16_t *samples, uint32_t point)
{
    double real = 0, imaginary = 0;

    for (uint32_t i = 0; i < f->window; i++) {
        double wave = cos(turn * i / f->window), angle = turn * (point * i % f->fft) / f->fft;
        double window = f->shape == MUC_FRONT_shape_hann      ? (1 - wave) / 2
                        : f->shape == MUC_FRONT_shape_hamming ? 0.54 - 0.46 * wave
                                                              : 1;

        real += samples[i] / 32768.0 * window * cos(angle);
        imaginary -= samples[i] / 32768.0 * window * sin(angle);
    }
    return f->power == 2 ? real * real + imaginary * imaginary : hypot(real, imaginary);
}

static void define(const muc_front_end *f, const int16_t *samples, double *features)
{
    static double energies[2049], bands[MOST_FEATURES];

    for (uint32_t k = 0; k <= f->fft / 2; k++)
        energies[k] = energy(f, samples, k);
    for (uint32_t b = 0; b < f->bands; b++) {
        double sum = 0;

        for (uint32_t k = 0; k <= f->fft / 2; k++)
            sum += weight(f, b, k) * energies[k];
        bands[b] = f->log == MUC_FRONT_log_ln
                       ? log(sum + f->least)
                       : log10(fmax(sum, f->least)) * (f->log == MUC_FRONT_log_db ? 10 : 1);
        features[b] = bands[b];
    }
    for (uint32_t k = 0; k < f->cepstra; k++) {
        features[k] = 0;
        for (uint32_t b = 0; b < f->bands; b++)
            features[k] += bands[b] * cos(turn / 2 * k * (b + 0.5) / f->bands) *
                           sqrt((k == 0 && f->dct == MUC_FRONT_dct_ortho ? 1.0 : 2.0) / f->bands);
    }
}

/* ---- features ---- */

typedef struct fixture {
    muc_context *ctx;
    muc_arena arena;
    muc_front_end front;
    muc_front_end_tables tables;
    uint64_t scratch[MUR_FRONT_END_SCRATCH_BYTES(4096, MOST_FEATURES) / 8 + 1];
    int16_t sound[SAMPLES];
} fixture;

static void open_front(fixture *x, const char *description)
{
    CHECK_OK(x->ctx, muc_front_end_parse(x->ctx, description, &x->front));
    CHECK_OK(x->ctx, muc_front_end_build(x->ctx, &x->arena, &x->front, &x->tables));
}

static int begin(void **state)
{
    fixture *x = calloc(1, sizeof(*x));

    x->ctx = muc_context_new(1);
    *state = x;
    return 0;
}

static int end(void **state)
{
    fixture *x = *state;

    muc_arena_free(&x->arena);
    muc_context_free(x->ctx);
    free(x);
    return 0;
}

static void floats_are_what_the_definition_says(void **state)
{
    fixture *x = *state;
    double expected[MOST_FEATURES];
    float found[MOST_FEATURES];

    for (size_t d = 0; d < sizeof(descriptions) / sizeof(*descriptions); d++) {
        open_front(x, descriptions[d]);
        make_sound(x->sound, 20000);
        for (uint32_t at = 0; at + x->front.window <= SAMPLES; at += 5003) {
            double step = x->front.log == MUC_FRONT_log_db ? 4.342944819 : 1;

            define(&x->front, x->sound + at, expected);
            mur_front_end_f32_run(&x->tables.f32, x->sound + at, x->scratch, found);
            for (uint32_t i = 0; i < muc_front_end_features(&x->front); i++)
                if (!(fabs((double)found[i] - expected[i]) < 1e-4 * step))
                    fail_msg("'%s': feature %u is %.7g, expected %.7g", descriptions[d], i,
                             (double)found[i], expected[i]);
        }
    }
}

/* signal to noise of a whole recording, means left out */
static double decibels_between(fixture *x)
{
    uint32_t features = muc_front_end_features(&x->front), frames = 0;
    double sums[MOST_FEATURES] = { 0 }, squares = 0, errors = 0;

    for (uint32_t at = 0; at + x->front.window <= SAMPLES; at += x->front.hop, frames++) {
        int32_t fixed[MOST_FEATURES];
        float real[MOST_FEATURES];

        mur_front_end_f32_run(&x->tables.f32, x->sound + at, x->scratch, real);
        mur_front_end_q16_run(&x->tables.q16, x->sound + at, x->scratch, fixed);
        for (uint32_t i = 0; i < features; i++) {
            double error = fixed[i] / 65536.0 - (double)real[i];

            sums[i] += (double)real[i];
            squares += (double)real[i] * (double)real[i];
            errors += error * error;
        }
    }
    for (uint32_t i = 0; i < features; i++)
        squares -= sums[i] * sums[i] / frames;
    return 10 * log10(squares / errors);
}

static void integers_are_40_db_from_floats_loud_and_quiet(void **state)
{
    static const double amplitudes[] = { 32767, 3000, 100, 4 };
    fixture *x = *state;

    for (size_t d = 0; d < sizeof(descriptions) / sizeof(*descriptions); d++) {
        double worst = 1000;

        open_front(x, descriptions[d]);
        for (size_t a = 0; a < 4; a++) {
            double found;

            make_sound(x->sound, amplitudes[a]);
            found = decibels_between(x);
            worst = found < worst ? found : worst;
            /* of log(1 + band) quiet sounds leave nothing but 0 */
            if (found < 40 && !(x->front.least >= 1 && a > 1))
                fail_msg("'%s' at %g: %.1f dB", descriptions[d], amplitudes[a], found);
        }
        print_message("%.1f dB or more: %s\n", worst, descriptions[d]);
    }
}

static void silence_is_the_logarithm_of_the_least(void **state)
{
    fixture *x = *state;

    for (size_t d = 0; d < sizeof(descriptions) / sizeof(*descriptions); d++) {
        int32_t fixed[MOST_FEATURES];
        float real[MOST_FEATURES];
        double factor;

        open_front(x, descriptions[d]);
        if (x->front.cepstra)
            continue;
        memset(x->sound, 0, sizeof(x->sound));
        mur_front_end_f32_run(&x->tables.f32, x->sound, x->scratch, real);
        mur_front_end_q16_run(&x->tables.q16, x->sound, x->scratch, fixed);
        factor = x->front.log == MUC_FRONT_log_ln ? 1 : 0.4342944819;
        factor *= x->front.log == MUC_FRONT_log_db ? 10 : 1;
        for (uint32_t i = 0; i < x->front.bands; i++) {
            assert_true(fabs((double)real[i] - factor * log(x->front.least)) < 1e-4);
            assert_true(fabs(fixed[i] / 65536.0 - factor * log(x->front.least)) < 2e-3);
        }
    }
}

/* the greatest numbers that there are neither overflow nor wrap */
static void full_scale_does_not_wrap(void **state)
{
    fixture *x = *state;

    for (size_t d = 0; d < sizeof(descriptions) / sizeof(*descriptions); d++) {
        open_front(x, descriptions[d]);
        for (uint32_t kind = 0; kind < 3; kind++) {
            for (uint32_t i = 0; i < SAMPLES; i++)
                x->sound[i] = kind == 0   ? -32768
                              : kind == 1 ? (int16_t)(i % 2 ? 32767 : -32768)
                                          : (int16_t)(random_u32() % 2 ? 32767 : -32768);
            if (kind == 2)
                assert_true(decibels_between(x) > 40);
            else
                (void)decibels_between(x); /* constant; sanitizers watch */
        }
    }
}

static void descriptions_are_refused_for_what_is_wrong(void **state)
{
    static const char *const wrong[][2] = {
        { "bands", "expected key=value" },
        { "band=40", "did you mean 'bands'" },
        { "mel=bark", "slaney" },
        { "bands=0", "from 1 to 512" },
        { "bands=4.5", "whole" },
        { "bands=40x", "whole" },
        { "least=nan", "from" },
        { "fft=400", "not a power of two" },
        { "fft=256", "shorter than window" },
        { "hop=481", "leave out samples" },
        { "low=4000", "low < high" },
        { "high=8001", "half of rate" },
        { "cepstra=41", "no more than bands" },
        { "window=16,hop=8,bands=1,cepstra=1,low=10,high=20,mel=htk", "no point of a spectrum" },
    };
    fixture *x = *state;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        muc_status status = muc_front_end_parse(x->ctx, wrong[i][0], &x->front);

        if (status == MUC_OK)
            status = muc_front_end_build(x->ctx, &x->arena, &x->front, &x->tables);
        CHECK_FAILS(x->ctx, MUC_USAGE, wrong[i][1], status);
    }
}

static void what_is_printed_is_read_again(void **state)
{
    fixture *x = *state;

    for (size_t d = 0; d < sizeof(descriptions) / sizeof(*descriptions); d++) {
        muc_front_end again = { 0 };
        muc_text text = { 0 };

        CHECK_OK(x->ctx, muc_front_end_parse(x->ctx, descriptions[d], &x->front));
        muc_front_end_print(&x->front, &text);
        CHECK_OK(x->ctx, muc_front_end_parse(x->ctx, text.data, &again));
        assert_memory_equal(&again, &x->front, sizeof(again));
        muc_text_free(&text);
    }
}

/* ---- inputs of int8 ---- */

static void features_become_the_nearest_int8(void **state)
{
    (void)state;
    for (int i = 0; i < 100000; i++) {
        int32_t feature = (int32_t)(random_u32() % (1u << 24)) - (1 << 23);
        float scale = 0.01f + (float)(random_u32() % 1000) / 500;
        int32_t zero = (int32_t)(random_u32() % 256) - 128;
        double level = feature / 65536.0 / (double)scale + zero;
        double expected = fmin(fmax(level, -128), 127);
        int8_t found = mur_feature_s8(feature, MUR_PER_SCALE(scale), zero);

        assert_true(fabs(found - expected) < 0.5 + 0.001 + fabs(level - zero) * 1e-4);
    }
}

/* ---- queues ---- */

static void frames_of_a_stream_are_those_of_the_whole(void **state)
{
    fixture *x = *state;
    int16_t memory[1024], frame[480];
    uint32_t put = 0, frames = 0;
    float streamed[40], whole[40];
    mur_ring ring;

    open_front(x, "");
    make_sound(x->sound, 9000);
    mur_ring_open(&ring, memory, sizeof(*memory), 1024);
    while (put < SAMPLES) {
        uint32_t block = 1 + random_u32() % 400;

        block = block < SAMPLES - put ? block : SAMPLES - put;
        assert_int_equal(mur_ring_put(&ring, x->sound + put, block), block);
        put += block;
        while (mur_ring_peek(&ring, frame, 480)) {
            mur_ring_take(&ring, 320);
            mur_front_end_f32_run(&x->tables.f32, frame, x->scratch, streamed);
            mur_front_end_f32_run(&x->tables.f32, x->sound + 320 * frames++, x->scratch, whole);
            assert_memory_equal(streamed, whole, 10 * sizeof(float));
        }
    }
    assert_int_equal(frames, 49);
}

/* beside a queue without end, with counters that wrap */
static void queues_give_back_what_was_put(void **state)
{
    enum { ITEMS = 100000 };
    (void)state;
    for (uint32_t size = 1; size <= 7; size += 3) {
        uint8_t memory[64 * 7], in[100 * 7], out[100 * 7];
        uint32_t put = 0, taken = 0;
        mur_ring ring;

        mur_ring_open(&ring, memory, size, 64);
        ring.put = ring.taken = 0xffffff00;
        while (put < ITEMS) {
            uint32_t count = random_u32() % 100, there = put - taken;

            for (uint32_t i = 0; i < count * size; i++)
                in[i] = (uint8_t)((put * size + i) * 167 >> 3);
            put += mur_ring_put(&ring, in, count);
            assert_int_equal(put - taken, there + count < 64 ? there + count : 64);
            assert_int_equal(mur_ring_count(&ring), put - taken);
            count = random_u32() % 100;
            assert_int_equal(mur_ring_peek(&ring, out, count), count <= put - taken);
            for (uint32_t i = 0; count <= put - taken && i < count * size; i++)
                assert_int_equal(out[i], (uint8_t)((taken * size + i) * 167 >> 3));
            mur_ring_take(&ring, count);
            taken += count <= put - taken ? count : put - taken;
        }
    }
}

/* ---- recordings ---- */

static void put_word(uint8_t **at, uint32_t value, int bytes)
{
    for (; bytes > 0; bytes--, value >>= 8)
        *(*at)++ = (uint8_t)value;
}

/* a file of 2 channels and 3 frames, behind a chunk of odd size; its size */
static size_t make_wav(uint8_t *file, uint32_t coding, uint32_t bits, uint32_t data_bytes)
{
    static const int16_t samples[] = { 1, 2, -1, -2, 32767, -32768 };
    uint8_t *at = file;

    memcpy(at, "RIFFxxxxWAVEjunk\3\0\0\0abc\0fmt ", 28);
    at += 28;
    put_word(&at, 16, 4);
    put_word(&at, coding, 2);
    put_word(&at, 2, 2);
    put_word(&at, 8000, 4);
    put_word(&at, 32000, 4);
    put_word(&at, 4, 2);
    put_word(&at, bits, 2);
    memcpy(at, "data", 4);
    at += 4;
    put_word(&at, data_bytes, 4);
    for (size_t i = 0; i < 6; i++)
        put_word(&at, (uint16_t)samples[i], 2);
    return (size_t)(at - file);
}

static void recordings_are_read_and_damaged_ones_refused(void **state)
{
    static const uint32_t sizes[] = { 12, 0xffffffff };
    fixture *x = *state;
    uint8_t file[128];
    muc_wav wav;
    size_t size;

    for (size_t i = 0; i < 2; i++) {
        size = make_wav(file, 1, 16, sizes[i]);
        CHECK_OK(x->ctx, muc_wav_read(x->ctx, &x->arena, (muc_bytes){ file, size, "a.wav" }, &wav));
        assert_int_equal(wav.rate, 8000);
        assert_int_equal(wav.count, 3);
        assert_int_equal(wav.samples[0], 1);
        assert_int_equal(wav.samples[1], -2);
        assert_int_equal(wav.samples[2], -1);
    }
    for (size_t cut = 0; cut < 56; cut++)
        if (muc_wav_read(x->ctx, &x->arena, (muc_bytes){ file, cut, "a.wav" }, &wav) == MUC_OK)
            fail_msg("%zu bytes are not a recording", cut);
    muc_error_clear(x->ctx);
    size = make_wav(file, 3, 32, 12);
    CHECK_FAILS(x->ctx, MUC_UNSUPPORTED, "ffmpeg",
                muc_wav_read(x->ctx, &x->arena, (muc_bytes){ file, size, "a.wav" }, &wav));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(floats_are_what_the_definition_says, begin, end),
        cmocka_unit_test_setup_teardown(integers_are_40_db_from_floats_loud_and_quiet, begin, end),
        cmocka_unit_test_setup_teardown(silence_is_the_logarithm_of_the_least, begin, end),
        cmocka_unit_test_setup_teardown(full_scale_does_not_wrap, begin, end),
        cmocka_unit_test_setup_teardown(descriptions_are_refused_for_what_is_wrong, begin, end),
        cmocka_unit_test_setup_teardown(what_is_printed_is_read_again, begin, end),
        cmocka_unit_test_setup_teardown(features_become_the_nearest_int8, begin, end),
        cmocka_unit_test_setup_teardown(frames_of_a_stream_are_those_of_the_whole, begin, end),
        cmocka_unit_test_setup_teardown(queues_give_back_what_was_put, begin, end),
        cmocka_unit_test_setup_teardown(recordings_are_read_and_damaged_ones_refused, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
