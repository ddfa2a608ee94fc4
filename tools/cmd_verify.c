/* `tutti verify`: is a program right? The same as `tutti program check`. */
#include "tutti.h"

#include "program/program_tool.h"

static void help(void)
{
    printf("usage: tutti verify FILE [OPTIONS]     tutti verify --algo A --op O --ranks N "
           "[OPTIONS]\n\n"
           "Proves that a collective is right for all ranks and lengths, or says which rank, "
           "instruction\nand chunk are not: contributions, order, deadlock freedom; how many slots "
           "and steps it needs\nand how far it is from the least. FILE is an algorithm in MSCCL's "
           "XML\nor a plan of MSCCL++ (-: standard input).\nExit status: 0 proved, 1 refused, 2 "
           "usage.\n");
    program_options_help(PROGRAM_JSON);
    printf("\nexamples:\n"
           "  tutti verify my_allreduce.xml\n"
           "  tutti verify --algo ring --op allreduce --ranks 8\n"
           "  tutti verify my_allreduce.xml --json\n");
}

int cmd_verify(int argc, char **argv)
{
    struct program_options options = {.command = "verify"};
    int status = program_options_read(&options, PROGRAM_JSON, argc, argv);
    if (status < 0) help();
    if (status) return status < 0 ? 0 : status;
    return program_verify(&options);
}
