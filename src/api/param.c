/* Parameters by name: the library's variables as NCCL's parameter interface shows them. Numbers,
 * sizes and switches are natively int64_t, the rest strings; a getter of another type refuses. */
#include "base/param.h"

#include "api/calls.h"
#include "base/error.h"
#include "plugin/plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct tt_param *find(const char *key)
{
    size_t count;
    const struct tt_param *table = tt_param_table(&count);
    tt_env_open(); /* may come before any init */
    for (size_t k = 0; k < count; k++) {
        if (strcmp(table[k].name, key) == 0) return &table[k];
    }
    return NULL;
}

/* A handle is its row of the table; anything else is refused. */
static const struct tt_param *row_of(ncclParamHandle_t handle)
{
    size_t count;
    const struct tt_param *table = tt_param_table(&count);
    for (size_t k = 0; k < count; k++) {
        if ((const void *)&table[k] == (const void *)handle) return &table[k];
    }
    return NULL;
}

static int64_t number_of(const struct tt_param *param)
{
    return param->type == TT_PARAM_BOOL ? tt_param_bool(param->name) : tt_param_int(param->name);
}

ncclResult_t pncclParamBind(ncclParamHandle_t *out, const char *key)
{
    if (!out || !key) return tt_fail(ncclInvalidArgument, "ParamBind: NULL argument");
    const struct tt_param *param = find(key);
    if (!param) return tt_fail(ncclInvalidArgument, "ParamBind: unknown parameter \"%s\"", key);
    memcpy(out, &param, sizeof(param)); /* the row is const, the handle type is not */
    return ncclSuccess;
}

static ncclResult_t get_checked(ncclParamHandle_t h, const void *out, const char *type,
                                bool want_str, const struct tt_param **param_out)
{
    if (!h || !out) return tt_fail(ncclInvalidArgument, "ParamGet%s: NULL argument", type);
    const struct tt_param *param = row_of(h);
    if (!param) {
        return tt_fail(ncclInvalidArgument, "ParamGet%s: handle %p is not from ncclParamBind", type,
                       (void *)h);
    }
    if (tt_param_is_text(param) != want_str) {
        return tt_fail(ncclInvalidArgument, "ParamGet%s: %s is natively %s", type, param->name,
                       want_str ? "I64" : "Str");
    }
    *param_out = param;
    return ncclSuccess;
}

/* No parameter is natively of any of these. */
static ncclResult_t get_other(ncclParamHandle_t h, const void *out, const char *type)
{
    if (!h || !out) return tt_fail(ncclInvalidArgument, "ParamGet%s: NULL argument", type);
    const struct tt_param *param = row_of(h);
    return tt_fail(ncclInvalidArgument, "ParamGet%s: %s is natively %s", type,
                   param ? param->name : "the handle is not from ncclParamBind; a parameter",
                   param && tt_param_is_text(param) ? "Str" : "I64");
}

ncclResult_t pncclParamGetI8(ncclParamHandle_t h, int8_t *out)
{
    return get_other(h, out, "I8");
}

ncclResult_t pncclParamGetI16(ncclParamHandle_t h, int16_t *out)
{
    return get_other(h, out, "I16");
}

ncclResult_t pncclParamGetI32(ncclParamHandle_t h, int32_t *out)
{
    return get_other(h, out, "I32");
}

ncclResult_t pncclParamGetU8(ncclParamHandle_t h, uint8_t *out)
{
    return get_other(h, out, "U8");
}

ncclResult_t pncclParamGetU16(ncclParamHandle_t h, uint16_t *out)
{
    return get_other(h, out, "U16");
}

ncclResult_t pncclParamGetU32(ncclParamHandle_t h, uint32_t *out)
{
    return get_other(h, out, "U32");
}

ncclResult_t pncclParamGetU64(ncclParamHandle_t h, uint64_t *out)
{
    return get_other(h, out, "U64");
}

ncclResult_t pncclParamGetI64(ncclParamHandle_t h, int64_t *out)
{
    const struct tt_param *param = NULL;
    ncclResult_t rc = get_checked(h, out, "I64", false, &param);
    if (!rc) *out = number_of(param);
    return rc;
}

ncclResult_t pncclParamGetStr(ncclParamHandle_t h, const char **out)
{
    const struct tt_param *param = NULL;
    ncclResult_t rc = get_checked(h, out, "Str", true, &param);
    if (!rc) *out = tt_param_str(param->name);
    return rc;
}

ncclResult_t pncclParamGet(ncclParamHandle_t h, void *out, int maxLen, int *len)
{
    if (len) *len = 0;
    if (!h || !out || !len || maxLen <= 0) {
        return tt_fail(ncclInvalidArgument, "ParamGet: NULL argument, or maxLen %d", maxLen);
    }
    const struct tt_param *param = row_of(h);
    if (!param) return tt_fail(ncclInvalidArgument, "ParamGet: handle is not from ncclParamBind");
    int64_t number = 0;
    const void *bytes = &number;
    size_t size = sizeof(number);
    if (tt_param_is_text(param)) {
        bytes = tt_param_shown(param->name);
        size = strlen(bytes) + 1;
    } else {
        number = number_of(param);
    }
    if ((size_t)maxLen < size) {
        return tt_fail(ncclInvalidArgument, "ParamGet: %s needs %zu bytes, maxLen is %d",
                       param->name, size, maxLen);
    }
    memcpy(out, bytes, size);
    *len = (int)size;
    return ncclSuccess;
}

ncclResult_t pncclParamGetParameter(const char *key, const char **value, int *valueLen)
{
    if (value) *value = NULL;
    if (valueLen) *valueLen = 0;
    if (!key || !value || !valueLen) {
        return tt_fail(ncclInvalidArgument, "ParamGetParameter: NULL argument");
    }
    const struct tt_param *param = find(key);
    if (!param) {
        return tt_fail(ncclInvalidArgument, "ParamGetParameter: unknown parameter \"%s\"", key);
    }
    *value = tt_param_shown(param->name);
    *valueLen = (int)strlen(*value);
    return ncclSuccess;
}

/* ---- all of them ---- */

ncclResult_t pncclParamGetAllParameterKeys(const char ***table, int *tableLen)
{
    if (!table || !tableLen) {
        return tt_fail(ncclInvalidArgument, "ParamGetAllParameterKeys: NULL argument");
    }
    const char **keys = tt_param_names();
    if (!keys) return tt_fail(ncclSystemError, "ParamGetAllParameterKeys: out of memory");
    size_t count;
    tt_param_table(&count);
    *table = keys;
    *tableLen = (int)count;
    return ncclSuccess;
}

/* The one function of the library that prints: its interface says stdout. */
void pncclParamDumpAll(void)
{
    size_t count;
    const struct tt_param *table = tt_param_table(&count);
    tt_env_open();
    for (size_t k = 0; k < count; k++) {
        fprintf(stdout, "%s=%s (%s)\n", table[k].name, tt_param_shown(table[k].name),
                tt_param_origin(table[k].name));
    }
}

/* ---- the weak aliases ---- */

__typeof__(pncclParamBind) ncclParamBind __attribute__((weak, alias("pncclParamBind")));
__typeof__(pncclParamGetI8) ncclParamGetI8 __attribute__((weak, alias("pncclParamGetI8")));
__typeof__(pncclParamGetI16) ncclParamGetI16 __attribute__((weak, alias("pncclParamGetI16")));
__typeof__(pncclParamGetI32) ncclParamGetI32 __attribute__((weak, alias("pncclParamGetI32")));
__typeof__(pncclParamGetU8) ncclParamGetU8 __attribute__((weak, alias("pncclParamGetU8")));
__typeof__(pncclParamGetU16) ncclParamGetU16 __attribute__((weak, alias("pncclParamGetU16")));
__typeof__(pncclParamGetU32) ncclParamGetU32 __attribute__((weak, alias("pncclParamGetU32")));
__typeof__(pncclParamGetU64) ncclParamGetU64 __attribute__((weak, alias("pncclParamGetU64")));
__typeof__(pncclParamGetI64) ncclParamGetI64 __attribute__((weak, alias("pncclParamGetI64")));
__typeof__(pncclParamGetStr) ncclParamGetStr __attribute__((weak, alias("pncclParamGetStr")));
__typeof__(pncclParamGet) ncclParamGet __attribute__((weak, alias("pncclParamGet")));
__typeof__(pncclParamGetParameter) ncclParamGetParameter
    __attribute__((weak, alias("pncclParamGetParameter")));
__typeof__(pncclParamGetAllParameterKeys) ncclParamGetAllParameterKeys
    __attribute__((weak, alias("pncclParamGetAllParameterKeys")));
__typeof__(pncclParamDumpAll) ncclParamDumpAll __attribute__((weak, alias("pncclParamDumpAll")));
