/* See import_file.h. */
#include "unit/program/import_file.h"

#include "unit/check.h"

#include "base/mem.h"
#include "program/import/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 16 << 20 };

char *import_file_read(const char *folder, const char *name, size_t *bytes_out)
{
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    char *text = malloc(MOST_BYTES + 1);
    FILE *file = fopen(path, "rb");
    assert_non_null(text);
    if (!file) fail_msg("%s cannot be opened", path);
    *bytes_out = fread(text, 1, MOST_BYTES, file);
    text[*bytes_out] = '\0';
    (void)fclose(file);
    return text;
}

void import_expect_fault(const char *text, size_t bytes, const char *wanted)
{
    struct tt_import *import = NULL;
    char fault[256];
    ncclResult_t rc = tt_import_read(text, bytes, &import, fault, sizeof(fault));
    if (rc != ncclInvalidUsage || !strstr(fault, wanted))
        fail_msg("%d \"%s\", wanted \"%s\"", (int)rc, fault, wanted);
    assert_null(import);
}

void import_expect_short_memory(const char *text)
{
    char fault[256];
    for (int k = 0;; k++) {
        struct tt_import *import = NULL;
        tt_fault_at(k);
        ncclResult_t rc = tt_import_read(text, strlen(text), &import, fault, sizeof(fault));
        tt_fault_at(-1);
        tt_import_destroy(import);
        if (!rc) break;
        assert_int_equal(rc, ncclSystemError);
        assert_string_equal(fault, "out of memory");
        assert_null(import);
    }
}
