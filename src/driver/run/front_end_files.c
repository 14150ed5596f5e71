/* front_end_files.c - features of recordings, by the runtime's functions, and a device's code for
 * them. */
#include <string.h>

#include "audio/audio_front_end.h"
#include "base/file.h"
#include "base/locale.h"
#include "formats/npy/npy.h"
#include "formats/wav/wav.h"
#include "muc/front_end.h"
#include "report/report_builder.h"
#include "targets/target.h"

/* ---- code ---- */

static muc_status compile(muc_context *ctx, const char *features,
                          const muc_compile_options *options, const char *out_path,
                          muc_report *report)
{
    const muc_target *target;
    muc_front_end front;

    MUC_TRY(muc_front_end_parse(ctx, features, &front));
    for (size_t i = 0; (target = muc_target_get(i)) && !target->front_end;)
        i++;
    return target->front_end(ctx, &front, options, out_path, report);
}

muc_status muc_front_end_compile(muc_context *ctx, const char *features,
                                 const muc_compile_options *options, const char *out_path,
                                 muc_report **out)
{
    MUC_IN_C_LOCALE;
    muc_status status;

    MUC_TRY(muc_report_new(ctx, out));
    status = compile(ctx, features, options, out_path, *out);
    if (status == MUC_OK)
        return MUC_OK;
    muc_report_free(*out);
    *out = NULL;
    return status;
}

/* ---- features ---- */

typedef struct recordings {
    muc_context *ctx;
    muc_arena arena;
    muc_front_end front;
    muc_front_end_tables tables;
    void *scratch;
    int32_t *fixed; /* features of a frame in integers */
    size_t count, frames;
    float *features; /* [count][frames][features of a frame] */
} recordings;

static muc_status read_recording(recordings *r, const char *path, muc_wav *out)
{
    muc_file file;
    muc_status status;
    size_t frames;

    MUC_TRY(muc_file_open(r->ctx, path, &file));
    status = muc_wav_read(r->ctx, &r->arena, file.bytes, out);
    muc_file_close(&file);
    MUC_TRY(status);
    if (out->rate != r->front.rate)
        return muc_fail(r->ctx, MUC_USAGE, path, MUC_NO_OFFSET,
                        "has %u samples a second, the features want %u: say rate=%u, or convert "
                        "it: ffmpeg -i FILE -ar %u OTHER.wav",
                        out->rate, r->front.rate, out->rate, r->front.rate);
    if (out->count < r->front.window)
        return muc_fail(r->ctx, MUC_USAGE, path, MUC_NO_OFFSET,
                        "has %zu samples, fewer than a window, which has %u", out->count,
                        r->front.window);
    frames = (out->count - r->front.window) / r->front.hop + 1;
    if (r->frames && frames != r->frames)
        return muc_fail(r->ctx, MUC_USAGE, path, MUC_NO_OFFSET,
                        "has %zu frames, the recordings before it %zu: of several all must be "
                        "equally long",
                        frames, r->frames);
    r->frames = frames;
    return MUC_OK;
}

static void compute_frame(recordings *r, const int16_t *samples, float *out)
{
    uint32_t features = muc_front_end_features(&r->front);

    if (r->front.numbers == MUC_FRONT_numbers_float) {
        mur_front_end_f32_run(&r->tables.f32, samples, r->scratch, out);
        return;
    }
    mur_front_end_q16_run(&r->tables.q16, samples, r->scratch, r->fixed);
    for (uint32_t i = 0; i < features; i++)
        out[i] = (float)r->fixed[i] / 65536;
}

static void add_row(recordings *r, const char *path, const muc_wav *wav, const float *features,
                    muc_report *report)
{
    size_t count = r->frames * muc_front_end_features(&r->front);
    float least = features[0], greatest = features[0];

    for (size_t i = 1; i < count; i++) {
        least = features[i] < least ? features[i] : least;
        greatest = features[i] > greatest ? features[i] : greatest;
    }
    muc_report_begin_row(report);
    muc_report_add_text(report, "file", "%s", path);
    muc_report_add_real(report, "seconds", (double)wav->count / wav->rate);
    muc_report_add_real(report, "least", (double)least);
    muc_report_add_real(report, "greatest", (double)greatest);
    muc_report_end(report);
}

static muc_status compute_all(recordings *r, const char *const *paths, muc_report *report)
{
    uint32_t features = muc_front_end_features(&r->front);

    muc_report_begin_table(report, "recordings");
    for (size_t i = 0; i < r->count; i++) {
        float *out;
        muc_wav wav;

        MUC_TRY(read_recording(r, paths[i], &wav));
        if (!r->features)
            MUC_TRY(MUC_ARENA_NEW(r->ctx, &r->arena, (uint64_t)r->count * r->frames * features,
                                  &r->features));
        out = r->features + i * r->frames * features;
        for (size_t f = 0; f < r->frames; f++)
            compute_frame(r, wav.samples + f * r->front.hop, out + f * features);
        add_row(r, paths[i], &wav, out, report);
    }
    muc_report_end(report);
    return MUC_OK;
}

static muc_status write_array(recordings *r, const char *path)
{
    muc_tensor_view view = {
        .name = "features", .dtype = MUC_F32, .data = (const uint8_t *)r->features, .file = path
    };

    if (r->count > 1)
        view.dims[view.rank++] = r->count;
    view.dims[view.rank++] = r->frames;
    view.dims[view.rank++] = muc_front_end_features(&r->front);
    MUC_TRY(muc_tensor_measure(r->ctx, &view));
    return muc_npy_write(r->ctx, path, &view);
}

static muc_status run(recordings *r, const char *features, const char *const *paths,
                      const char *out_path, muc_report *report)
{
    uint32_t of_a_frame;

    MUC_TRY(muc_front_end_parse(r->ctx, features, &r->front));
    if (out_path)
        MUC_TRY(muc_output_precheck(r->ctx, out_path));
    of_a_frame = muc_front_end_features(&r->front);
    MUC_TRY(muc_front_end_build(r->ctx, &r->arena, &r->front, &r->tables));
    MUC_TRY(muc_arena_new(r->ctx, &r->arena,
                          MUR_FRONT_END_SCRATCH_BYTES(r->front.fft, r->front.bands), 1,
                          &r->scratch));
    MUC_TRY(MUC_ARENA_NEW(r->ctx, &r->arena, of_a_frame, &r->fixed));
    MUC_TRY(compute_all(r, paths, report));
    muc_report_add_count(report, "frames", r->frames);
    muc_report_add_count(report, "features_of_a_frame", of_a_frame);
    return out_path ? write_array(r, out_path) : MUC_OK;
}

muc_status muc_front_end_run(muc_context *ctx, const char *features, const char *const *paths,
                             size_t count, const char *out_path, muc_report **out)
{
    MUC_IN_C_LOCALE;
    recordings r = { .ctx = ctx, .count = count };
    muc_status status;

    MUC_TRY(muc_report_new(ctx, out));
    status = run(&r, features, paths, out_path, *out);
    if (status == MUC_OK)
        status = muc_report_status(ctx, *out);
    muc_arena_free(&r.arena);
    if (status == MUC_OK)
        return MUC_OK;
    muc_report_free(*out);
    *out = NULL;
    return status;
}
