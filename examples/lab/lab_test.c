/* lab_test.c - tests a machine against a program, stage by stage.
 *
 *     lab_test PROGRAM.utp [--json] [--break OPCODE:WORD]
 *
 * The machine under test is uthinker_sim here; an RTL model or a board goes in its place, in the
 * four functions of muc_machine. --break makes it a broken one: after each instruction OPCODE the
 * word of GB that WORD of the instruction addresses is wrong (mur_isa.def; 37:3 is DIV's daddr).
 * Exit status: 0 if every bit is right, else the muc_status.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "muc/muc.h"
#include "uthinker_sim.h"

typedef struct lab_machine {
    mur_sim sim;
    mur_hal hal;
    unsigned broken_opcode, broken_word; /* 0: it is right */
} lab_machine;

/* ---- the machine under test ---- */

static void spoil(void *arg, const mur_sim *sim, enum mur_engine engine, const uint32_t *words)
{
    const lab_machine *lab = arg;
    uint32_t *gb = (uint32_t *)(void *)sim->memory.gb;

    (void)engine;
    if ((words[0] & 0xff) == lab->broken_opcode)
        gb[words[lab->broken_word] & 0x3ffff] ^= 1;
}

static bool start(void *arg, const muc_machine_memory *memory)
{
    lab_machine *lab = arg;
    mur_sim_memory own = { .isa = memory->isa,
                           .wgts = memory->wgts,
                           .parm = memory->parm,
                           .kv = memory->kv,
                           .io = memory->io,
                           .region_bytes = { memory->wgts_bytes, memory->parm_bytes,
                                             memory->kv_bytes, memory->io_bytes } };

    for (unsigned i = 0; i < MUR_BUFFERS; i++) {
        void *buffer = calloc(1, memory->buffer_bytes[i]); /* as long as the program runs */

        if (!buffer)
            return false;
        own.buffer_bytes[i] = memory->buffer_bytes[i];
        if (i == MUR_GB)
            own.gb = buffer;
        else
            own.buffer[i] = buffer;
    }
    mur_sim_init(&lab->sim, &own, MUR_SIM_RANDOM, 1); /* engines as unpredictable as real ones */
    if (lab->broken_opcode) {
        lab->sim.probe = spoil;
        lab->sim.probe_arg = lab;
    }
    lab->hal = mur_sim_hal(&lab->sim);
    return true;
}

static muc_machine_answer answer(mur_status status)
{
    return status == MUR_OK      ? MUC_MACHINE_TAKEN
           : status == MUR_YIELD ? MUC_MACHINE_BUSY
                                 : MUC_MACHINE_FAULT;
}

static muc_machine_answer dma(void *arg, const uint32_t *words)
{
    lab_machine *lab = arg;

    return answer(lab->hal.dma(lab->hal.arg, words));
}

static muc_machine_answer accelerator(void *arg, const uint32_t *words)
{
    lab_machine *lab = arg;

    return answer(lab->hal.accel(lab->hal.arg, words));
}

static uint32_t completed(void *arg, muc_machine_engine engine)
{
    lab_machine *lab = arg;

    return lab->hal.completed(lab->hal.arg, engine == MUC_MACHINE_DMA ? MUR_DMA : MUR_ACC);
}

/* ---- the test ---- */

static void print_report(muc_context *ctx, const muc_report *report, bool json)
{
    char *text;

    if (!report)
        return;
    if ((json ? muc_report_as_json : muc_report_as_text)(ctx, report, &text) != MUC_OK)
        return;
    fputs(text, stdout);
    free(text);
}

static muc_status test(muc_context *ctx, const char *path, lab_machine *lab, bool json)
{
    const muc_machine machine = { lab, start, dma, accelerator, completed, 0 };
    muc_report *report = NULL;
    muc_model *program = NULL;
    muc_status status = muc_model_open(ctx, path, NULL, &program);

    if (status == MUC_OK)
        status = muc_verify_machine(ctx, program, &machine, NULL, &report);
    print_report(ctx, report, json);
    if (status != MUC_OK)
        fprintf(stderr, "%s\n", muc_error_message(ctx));
    muc_report_free(report);
    muc_model_close(program);
    return status;
}

int main(int argc, char **argv)
{
    static lab_machine lab;
    const char *path = NULL;
    bool json = false;
    muc_context *ctx;
    muc_status status;

    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (strcmp(argv[i], "--break") == 0 && i + 1 < argc)
            sscanf(argv[++i], "%u:%u", &lab.broken_opcode, &lab.broken_word);
        else
            path = argv[i];
    if (!path || lab.broken_word >= MUR_MAX_WORDS) {
        fprintf(stderr, "usage: lab_test PROGRAM.utp [--json] [--break OPCODE:WORD]\n");
        return MUC_USAGE;
    }
    ctx = muc_context_new(1);
    status = test(ctx, path, &lab, json);
    muc_context_free(ctx);
    return status;
}
