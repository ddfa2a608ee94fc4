/* See touched.h. */
#include "touched.h"

#include <stdbool.h>
#include <string.h>

enum { LINE_SHIFT = 6 };
enum map { ONE_BYTE, TWO_BYTES, VECTOR }; /* of opcodes: plain, after 0f, all others */

struct insn {
    const uint8_t *at; /* what follows the opcode: ModRM, if it has one */
    uint64_t segment;  /* its base */
    uint8_t rex, opcode;
    enum map map;
};

static void note(uint64_t *lines, int *count, uint64_t address)
{
    uint64_t line = address >> LINE_SHIFT;
    for (int k = 0; k < *count; k++) {
        if (lines[k] == line) return;
    }
    if (*count < TOUCHED_LINES) lines[(*count)++] = line;
}

static uint64_t register_of(const struct user_regs_struct *regs, int number)
{
    const uint64_t values[16] = {regs->rax, regs->rcx, regs->rdx, regs->rbx, regs->rsp, regs->rbp,
                                 regs->rsi, regs->rdi, regs->r8,  regs->r9,  regs->r10, regs->r11,
                                 regs->r12, regs->r13, regs->r14, regs->r15};
    return values[number & 15];
}

static struct insn read_insn(const uint8_t *code, const struct user_regs_struct *regs)
{
    static const uint8_t prefixes[] = {0x66, 0xf2, 0xf3, 0x2e, 0x36, 0x3e,
                                       0x26, 0x64, 0x65, 0x67, 0xf0};
    struct insn insn = {.at = code};
    for (; memchr(prefixes, *insn.at, sizeof(prefixes)); insn.at++) {
        if (*insn.at == 0x64) insn.segment = regs->fs_base;
    }
    if ((*insn.at & 0xf0) == 0x40) insn.rex = *insn.at++;
    if (*insn.at == 0xc5 || *insn.at == 0xc4 || *insn.at == 0x62) {
        const uint8_t *vector = insn.at; /* register bits are stored inverted */
        insn.rex = (uint8_t)((vector[1] >> 7 ? 0 : 4));
        if (*vector != 0xc5) insn.rex = (uint8_t)(~vector[1] >> 5 & 7);
        insn.map = VECTOR;
        insn.at += *vector == 0xc5 ? 2 : *vector == 0xc4 ? 3 : 4;
    } else if (*insn.at == 0x0f) {
        insn.map = TWO_BYTES;
        insn.at++;
        if (*insn.at == 0x38 || *insn.at == 0x3a) {
            insn.map = VECTOR;
            insn.at++;
        }
    }
    insn.opcode = *insn.at++;
    return insn;
}

/* Whether the opcode has an operand by ModRM that is read or written. */
static bool has_operand(const struct insn *insn)
{
    uint8_t op = insn->opcode;
    if (insn->map == VECTOR) return op != 0x77;
    if (insn->map == TWO_BYTES) {
        bool none = op < 0x10 || (op >= 0x18 && op <= 0x1f) || (op >= 0x30 && op < 0x38) ||
                    (op & 0xf0) == 0x80 || op == 0x77 || op == 0xa2 || (op & 0xf8) == 0xc8;
        return !none;
    }
    if (op < 0x40) return (op & 7) < 4;
    if (op == 0x8d) return false; /* lea */
    return op == 0x63 || op == 0x69 || op == 0x6b || (op >= 0x80 && op < 0x90) ||
           (op & 0xfe) == 0xc0 || (op & 0xfe) == 0xc6 || (op & 0xfc) == 0xd0 ||
           (op & 0xf8) == 0xd8 || (op & 0xfe) == 0xf6 || (op & 0xfe) == 0xfe;
}

static uint64_t base_of(const struct insn *insn, const struct user_regs_struct *regs, uint8_t base)
{
    return register_of(regs, base | (insn->rex & 1 ? 8 : 0));
}

/* What a SIB byte adds up; *far_out: a displacement of four bytes follows whatever the mode. */
static uint64_t scaled(const struct insn *insn, const struct user_regs_struct *regs, bool *far_out)
{
    uint8_t sib = insn->at[1];
    int index = (sib >> 3 & 7) | (insn->rex & 2 ? 8 : 0);
    uint64_t address = index == 4 ? 0 : register_of(regs, index) << (sib >> 6);
    *far_out = (sib & 7) == 5 && insn->at[0] >> 6 == 0;
    return *far_out ? address : address + base_of(insn, regs, sib & 7);
}

/* The address that ModRM names; false: a register. */
static bool address_of(const struct insn *insn, const uint8_t *code,
                       const struct user_regs_struct *regs, uint64_t *address_out)
{
    uint8_t mode = insn->at[0] >> 6, base = insn->at[0] & 7;
    const uint8_t *rest = insn->at + (base == 4 ? 2 : 1);
    bool far = mode == 2;
    int32_t displacement = 0;
    if (mode == 3) return false;
    if (base == 4) {
        *address_out = scaled(insn, regs, &far);
        far = far || mode == 2;
    } else if (base == 5 && !mode) { /* from the instruction's end; immediates are left out */
        *address_out = regs->rip + (uint64_t)(rest + 4 - code);
        far = true;
    } else {
        *address_out = base_of(insn, regs, base);
    }
    if (far) memcpy(&displacement, rest, sizeof(displacement));
    if (mode == 1) displacement = *rest < 128 ? *rest : *rest - 256;
    *address_out += insn->segment + (uint64_t)(int64_t)displacement;
    return true;
}

/* Calls, returns, pushes and pops. */
static bool uses_stack(const struct insn *insn, uint64_t *address,
                       const struct user_regs_struct *regs)
{
    uint8_t op = insn->opcode;
    if (insn->map != ONE_BYTE) return false;
    uint8_t which = insn->at[0] >> 3 & 7;
    bool pushes = (op & 0xf8) == 0x50 || op == 0xe8 || op == 0x68 || op == 0x6a ||
                  (op == 0xff && (which == 2 || which == 6));
    bool pops = (op & 0xf8) == 0x58 || op == 0xc3 || op == 0xc9;
    *address = pushes ? regs->rsp - 8 : regs->rsp;
    return pushes || pops;
}

void touched_note(struct touched *touched, const uint8_t code[16],
                  const struct user_regs_struct *regs)
{
    uint64_t address;
    struct insn insn = read_insn(code, regs);
    note(touched->code, &touched->ncode, regs->rip);
    if (uses_stack(&insn, &address, regs)) note(touched->data, &touched->ndata, address);
    if (has_operand(&insn) && address_of(&insn, code, regs, &address))
        note(touched->data, &touched->ndata, address);
}
