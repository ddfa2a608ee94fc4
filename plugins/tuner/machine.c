/* The name of this machine as `tutti tune` writes it into its table: processor and cores. */
#include "tuner.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { LINE_BYTES = 256, PROCESSOR_BYTES = TUNER_MACHINE_BYTES - 32 };

void tuner_machine_name(char name[TUNER_MACHINE_BYTES])
{
    char line[LINE_BYTES], processor[PROCESSOR_BYTES] = "";
    struct utsname names;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && !processor[0] && fgets(line, sizeof(line), file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        colon += 1 + strspn(colon + 1, " \t");
        snprintf(processor, sizeof(processor), "%.*s", (int)strcspn(colon, "\n"), colon);
    }
    if (file) fclose(file);
    if (!processor[0] && !uname(&names))
        snprintf(processor, sizeof(processor), "%s", names.machine);
    snprintf(name, TUNER_MACHINE_BYTES, "%s, %ld cores", processor, sysconf(_SC_NPROCESSORS_ONLN));
}
