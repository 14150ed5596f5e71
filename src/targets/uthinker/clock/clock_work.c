/* clock_work.c - operands of an instruction, and the cycles and bytes that follow from them. */
#include "targets/uthinker/clock/clock_work.h"

#include "mur_code.h"

#define AT(name) MUR_OPERAND_##name

/* the operand that each field is, in the order of uthinker_isa.h's fields */
static const uint8_t field_operands[] = {
#define MUR_FIELD(insn, name, word, shift, width, unit) AT(name),
#include "mur_isa.def"
};

static const struct {
    uint8_t op, place, address, rows, pitch, size;
    bool writes;
} accesses[] = {
#define READS false
#define WRITES true
#define MUR_ACCESS(insn, mode, place, address, rows, pitch, size) \
    { MUC_INSN_##insn, AT(place), AT(address), AT(rows), AT(pitch), AT(size), mode },
#include "mur_isa.def"
#undef READS
#undef WRITES
};

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t quotient_up(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

uint64_t muc_clock_scale(uint64_t a, uint64_t b, uint64_t c)
{
    if (b != 0 && a / c > UINT64_MAX / 2 / b)
        return UINT64_MAX;
    return a / c * b + quotient_up(a % c * b, c);
}

static void read_operands(const muc_uthinker_machine *machine, uint32_t op, const uint32_t *words,
                          uint64_t *v)
{
    uint32_t first = muc_insn_get(op)->first_field;

#define MUR_CONSTANT(name, value) v[AT(name)] = (value);
#include "mur_isa.def"
    for (uint32_t i = 0; i < muc_insn_fields(op); i++) {
        const muc_field_info *field = muc_field_get(first + i);

        v[field_operands[first + i]] = mur_bits(words[field->word], field->shift, field->width);
    }
    v[AT(chunk)] = machine->tokens;
    v[AT(place)] = v[AT(region)] + MUR_BUFFERS;
    v[AT(slots)] = muc_uthinker_slots_bytes((uint32_t)v[AT(k)], (uint32_t)v[AT(terms)]);
    v[AT(chunk_slots)] = muc_uthinker_slots_bytes((uint32_t)v[AT(chunk)], (uint32_t)v[AT(terms)]);
    v[AT(rows_slots)] = muc_uthinker_slots_bytes((uint32_t)v[AT(rows)], (uint32_t)v[AT(terms)]);
    v[AT(heads_k)] = v[AT(heads)] * v[AT(k)];
    v[AT(group_k)] = v[AT(group)] * v[AT(k)];
    v[AT(groups)] = v[AT(group)] ? quotient_up(v[AT(rows)], v[AT(group)]) : 0;
    v[AT(k_4)] = 4 * v[AT(k)];
}

/* scores that SMAX reads, and elements of O that it rescales */
static uint64_t softmax_elements(const uint64_t *v)
{
    uint64_t sum = 0;

    for (uint64_t r = 0; r < v[AT(rows)]; r++) {
        uint64_t token = v[AT(group)] ? r / v[AT(group)] : 0, scores;

        if (token < v[AT(skip)])
            continue;
        scores = v[AT(valid)] + token - v[AT(skip)];
        sum += (scores < v[AT(chunk)] ? scores : v[AT(chunk)]) + v[AT(k)];
    }
    return sum;
}

static uint64_t count_elements(uint32_t op, const uint64_t *v)
{
    switch (op) {
    case MUC_INSN_ROPE:
        return v[AT(rows)] * v[AT(heads_k)];
    case MUC_INSN_QPACK:
        return v[AT(rows)] * v[AT(cols)];
    case MUC_INSN_SMAX:
        return softmax_elements(v);
    case MUC_INSN_AMAX:
        return v[AT(k)];
    default: /* EMBED, and NORM, QUANT and others of rows of k */
        return v[AT(rows)] * v[AT(k)];
    }
}

/* GB's operands are words where the instruction names GB itself; a buffer that an LD or ST names
 * holds bytes. */
static uint64_t unit_of(uint32_t access)
{
    return accesses[access].place == AT(gb) ? 4 : 1;
}

static uint64_t count_sram_bytes(uint32_t op, const uint64_t *v)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < MUC_COUNT(accesses); i++)
        if (accesses[i].op == op && v[accesses[i].place] < MUR_BUFFERS)
            bytes += v[accesses[i].rows] * v[accesses[i].size] * unit_of(i);
    return bytes;
}

/* whether what the instruction writes to GB goes on from what is there */
static bool modifies_gb(uint32_t op, const uint64_t *v)
{
    return op == MUC_INSN_ROPE || op == MUC_INSN_CAP ||
           ((op == MUC_INSN_MM || op == MUC_INSN_SCALE || op == MUC_INSN_RMS) && v[AT(acc)]) ||
           (op == MUC_INSN_SMAX && !v[AT(first)]);
}

uint32_t muc_clock_accesses_of(const muc_uthinker_machine *machine, const uint32_t *words,
                               muc_clock_access out[MUC_CLOCK_MOST_ACCESSES])
{
    uint64_t v[MUR_OPERANDS] = { 0 };
    uint32_t op, count = 0;

    muc_insn_find_opcode(words[0] & MUC_WORD0_OPCODE, &op);
    read_operands(machine, op, words, v);
    for (uint32_t i = 0; i < MUC_COUNT(accesses) && count < MUC_CLOCK_MOST_ACCESSES; i++)
        if (accesses[i].op == op && v[accesses[i].place] < MUR_BUFFERS)
            out[count++] = (muc_clock_access){
                .buffer = (enum mur_buffer)v[accesses[i].place],
                .writes = accesses[i].writes,
                .modifies = accesses[i].writes && unit_of(i) == 4 && modifies_gb(op, v),
                .begin = v[accesses[i].address] * unit_of(i),
                .rows = v[accesses[i].rows],
                .pitch = v[accesses[i].pitch] * unit_of(i),
                .size = v[accesses[i].size] * unit_of(i),
            };
    return count;
}

muc_clock_work muc_clock_work_of(const muc_uthinker_machine *machine, const uint32_t *words)
{
    muc_clock_work work = { 0 };
    uint64_t v[MUR_OPERANDS] = { 0 };
    uint32_t burst = machine->costs.time.dram_burst;

    muc_insn_find_opcode(words[0] & MUC_WORD0_OPCODE, &work.op);
    work.engine = muc_insn_get(work.op)->engine;
    read_operands(machine, work.op, words, v);
    work.sram_bytes = count_sram_bytes(work.op, v);
    if (work.engine == MUR_DMA) {
        work.region = (uint32_t)v[AT(region)];
        work.offset = v[AT(off)];
        work.bytes = v[AT(len)];
        if (work.bytes)
            work.burst_bytes =
                (quotient_up(v[AT(off)] + v[AT(len)], burst) - v[AT(off)] / burst) * burst;
    } else if (work.op == MUC_INSN_MM) {
        work.array_cycles = muc_uthinker_tiles(machine, (uint32_t)v[AT(k)], (uint32_t)v[AT(cols)]) *
                            v[AT(rows)] * v[AT(terms)];
        work.macs = v[AT(rows)] * v[AT(cols)] * v[AT(k)] * v[AT(terms)];
    } else {
        work.elements = count_elements(work.op, v);
    }
    return work;
}

/* cycles of the accelerator's clock, in picoseconds */
static uint64_t cycles_ps(const muc_uthinker_time *time, uint64_t cycles)
{
    return muc_clock_scale(cycles, 1000000000, time->acc_khz);
}

uint64_t muc_clock_work_ps(const muc_uthinker_time *time, const muc_clock_work *work)
{
    if (work->engine == MUR_DMA)
        return cycles_ps(time, time->dma_start) +
               larger(cycles_ps(time, quotient_up(work->bytes, time->dma_bytes)),
                      muc_clock_scale(work->burst_bytes, 1000000, time->dram_mbs));
    if (work->op == MUC_INSN_MM)
        return cycles_ps(time, time->mm_start + work->array_cycles);
    return cycles_ps(time, time->vector_start + quotient_up(work->elements * time->vector_passes,
                                                            time->vector_width));
}
