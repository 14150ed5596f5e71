/* plugin.c - a TCG plugin for QEMU 7.2 and later that counts the instructions executed between two
 * markers (markers.h), and prints "#instructions N" for each such region to standard error. With
 * the option paths=FILE it also writes the way that each region took (paths.h), for bench/cycles.
 *
 * Debian ships no qemu-plugin.h; the few functions used are declared here. A page's last 16-bit
 * Thumb instruction may be reported as one of 4 bytes, so only the first halfword is compared. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "paths.h"

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t,
                                           void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, void (*)(unsigned, void *),
                                            int, void *);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *, int, void *, uint64_t);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
int qemu_plugin_install(qemu_plugin_id_t, const void *, int, char **);

int qemu_plugin_version = 1;

static uint64_t executed, at_begin;
static int is_arm, follows; /* follows: writes paths */

static void begin(unsigned cpu, void *arg)
{
    (void)cpu;
    (void)arg;
    at_begin = executed;
    if (follows)
        paths_begin();
}

static void end(unsigned cpu, void *arg)
{
    (void)cpu;
    (void)arg;
    fprintf(stderr, "#instructions %llu\n", (unsigned long long)(executed - at_begin));
    if (follows)
        paths_end();
}

static void enter(unsigned cpu, void *segment)
{
    (void)cpu;
    paths_enter(segment);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    struct segment *segment = NULL;

    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(block, i);
        size_t size = qemu_plugin_insn_size(insn);
        uint32_t bits = 0;

        memcpy(&bits, qemu_plugin_insn_data(insn), size < 4 ? size : 4);
        if (is_arm)
            bits &= 0xffff;
        if (bits == (is_arm ? 0x46e4 : 0x00100013)) {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, begin, 0, NULL);
            segment = NULL;
        } else if (bits == (is_arm ? 0x46d2 : 0x00200013)) {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, end, 0, NULL);
            segment = NULL;
        } else {
            qemu_plugin_register_vcpu_insn_exec_inline(insn, 0, &executed, 1);
            if (follows && !segment) {
                segment = paths_segment(qemu_plugin_insn_vaddr(insn));
                qemu_plugin_register_vcpu_insn_exec_cb(insn, enter, 0, segment);
            }
            if (segment)
                segment->instructions++;
        }
    }
}

int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int count, char **options)
{
    for (int i = 0; i < count; i++)
        if (strncmp(options[i], "paths=", 6) == 0) {
            if (!paths_open(options[i] + 6))
                return 1;
            follows = 1;
        }
    is_arm = strncmp(*(const char *const *)info, "arm", 3) == 0; /* its first member */
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
