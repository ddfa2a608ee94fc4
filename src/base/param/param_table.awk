# Turns variables.tsv into the sorted C table behind param.h. A wrong row stops the build.
BEGIN {
    FS = "\t"
    print "/* Made from variables.tsv by param_table.awk. */"
    print "#include \"base/param.h\"\n"
    print "#include \"base/mem.h\"\n"
    print "static const struct tt_param params[] = {"
}
function text(s) {
    gsub(/\\/, "\\\\", s)
    gsub(/"/, "\\\"", s)
    return "\"" s "\""
}
/^#/ { next }
{
    if (NF != 8 || $2 !~ /^(INT|BOOL|BYTES|WORD|STR)$/ || $7 !~ /^(yes|no)$/ || $1 <= last) {
        print FILENAME ":" FNR ": not a row of 8 columns, sorted by name: " $1 > "/dev/stderr"
        failed = 1
        exit 1
    }
    last = $1
    printf "    {%s, TT_PARAM_%s, %s, %s, %s, %s, %s, %s},\n", text($1), $2,
        $3 == "-" ? "NULL" : text($3), text($4), text($5), text($6), text($8),
        $7 == "yes" ? "true" : "false"
}
END {
    if (failed) exit 1
    print "};\n"
    print "const struct tt_param *tt_param_table(size_t *count_out)\n{"
    print "    *count_out = TT_LEN(params);\n    return params;\n}"
}
