/* Machine files as a whole: read, check, print; and the element order of a running communicator. */
#include "file.h"

#include "check.h"
#include "complete.h"
#include "words.h"

#include "base/error.h"
#include "base/system/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ncclResult_t parse(const char *name, const char *text, size_t text_bytes,
                          ncclResult_t (*check)(struct tt_topo_file *file),
                          struct tt_topo_file **file_out)
{
    struct tt_topo_file *file = calloc(1, sizeof(*file));
    if (!file) return tt_fail(ncclSystemError, "%s: out of memory", name);
    file->name = strdup(name);
    ncclResult_t rc = file->name ? tt_xml_parse(name, text, text_bytes, &file->notes, &file->root)
                                 : tt_fail(ncclSystemError, "%s: out of memory", name);
    if (!rc) rc = check(file);
    if (rc) {
        tt_topo_file_free(file);
    } else {
        *file_out = file;
    }
    return rc;
}

ncclResult_t tt_topo_file_parse(const char *name, const char *text, size_t text_bytes,
                                struct tt_topo_file **file_out)
{
    return parse(name, text, text_bytes, tt_topo_file_check, file_out);
}

ncclResult_t tt_topo_partial_parse(const char *name, const char *text, size_t text_bytes,
                                   struct tt_topo_file **file_out)
{
    return parse(name, text, text_bytes, tt_topo_partial_check, file_out);
}

ncclResult_t tt_topo_partial_read(const char *path, struct tt_topo_file **file_out)
{
    char *text = NULL;
    size_t bytes = 0;
    ncclResult_t rc = tt_topo_file_text(path, &text, &bytes);
    if (!rc) rc = tt_topo_partial_parse(path, text, bytes, file_out);
    free(text);
    return rc;
}

/* The stream is closed on every path. */
static ncclResult_t read_text(const char *path, FILE *in, char **text_out, size_t *bytes_out)
{
    ncclResult_t rc = ncclSuccess;
    char *text = malloc((size_t)TT_XML_FILE_BYTES + 1);
    if (!text) {
        rc = tt_fail(ncclSystemError, "%s: out of memory", path);
        goto out;
    }
    *bytes_out = fread(text, 1, (size_t)TT_XML_FILE_BYTES + 1, in);
    if (ferror(in)) {
        rc = tt_fail(ncclSystemError, "%s: cannot be read: %m", path);
        goto out;
    }
    *text_out = text;
    text = NULL;
out:
    (void)fclose(in);
    free(text);
    return rc;
}

ncclResult_t tt_topo_file_text(const char *path, char **text_out, size_t *bytes_out)
{
    const char *why;
    FILE *in = tt_file_open(path, &why);
    if (!in) return tt_fail(ncclSystemError, "%s: cannot be opened: %s", path, why);
    return read_text(path, in, text_out, bytes_out);
}

ncclResult_t tt_topo_file_read(const char *path, struct tt_topo_file **file_out)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *in = fopen(path, "rbe"); /* of a command's user: a pipe is welcome */
    if (!in) return tt_fail(ncclSystemError, "%s: cannot be opened: %m", path);
    ncclResult_t rc = read_text(path, in, &text, &bytes);
    if (!rc) rc = tt_topo_file_parse(path, text, bytes, file_out);
    free(text);
    return rc;
}

void tt_topo_file_free(struct tt_topo_file *file)
{
    if (!file) return;
    tt_xml_free(file->root);
    tt_topo_notes_fini(&file->notes);
    free(file->name);
    free(file);
}

const char *tt_topo_file_warnings(const struct tt_topo_file *file)
{
    return file->notes.text ? file->notes.text : "";
}

char *tt_topo_file_print(const struct tt_topo_file *file)
{
    return tt_xml_print(file->root);
}
