/* Completion for three shells. What a verb takes is known when its word stands on the line; without
 * one, it is a profiling run. */
#include "sampler/app/document.h"
#include "sampler/app/option_value.h"

#include <string.h>

enum { WORDLESS = 1 << VERB_ATTACH | 1 << VERB_LAUNCH };

/* The rows that a line with this verb may have; VERB_NONE: with none. */
static bool row_goes(const struct option_row *row, enum verb verb)
{
    return verb == VERB_NONE ? row->verbs & WORDLESS : option_goes_with(row, verb);
}

static const char *verb_word(enum verb verb)
{
    return verb == VERB_NONE ? "" : verb_rows[verb].word;
}

static bool verb_has_word(enum verb verb)
{
    return verb == VERB_NONE || verb_rows[verb].word;
}

static void verbs_write(FILE *out, const char *separator)
{
    const char *before = "";
    for (size_t i = 1; i < VERB_COUNT; i++) {
        if (!verb_rows[i].word)
            continue;
        fprintf(out, "%s%s", before, verb_rows[i].word);
        before = separator;
    }
}

static void words_write(FILE *out, const struct option_row *row)
{
    for (size_t i = 0; option_word(row, i); i++)
        fprintf(out, "%s%s", i ? " " : "", option_word(row, i));
}

/* What `document` takes. */
static const char documents[] = "man bash zsh fish";

/* For a shell's single quotes; what stands in `escaped` gets a backslash. */
static void quoted_write(FILE *out, const char *text, const char *escaped)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fprintf(out, "%s%c", strchr(escaped, *text) ? "\\" : "", *text);
    }
}

/* ---- bash ---- */

static const char *const bash_fillings[] = {
    [FILL_NOTHING] = "return",
    [FILL_FILE] = "_scalene_attach_files -f; return",
    [FILL_FOLDER] = "_scalene_attach_files -d; return",
    [FILL_COMMAND] = "_scalene_attach_fill -c; return",
    [FILL_PROCESS] = "_scalene_attach_fill -W \"$(ps -eo pid= 2>/dev/null)\"; return",
};

static void bash_value_write(FILE *out, enum verb verb, const struct option_row *row)
{
    enum option_filling filling = option_kind(row)->filling;
    fprintf(out, "    %s:--%s", verb_word(verb), row->name);
    if (row->letter)
        fprintf(out, " | %s:-%c", verb_word(verb), row->letter);
    fputs(") ", out);
    if (filling == FILL_WORD) {
        fputs("_scalene_attach_fill -W '", out);
        words_write(out, row);
        fputs("'; return", out);
    } else {
        fputs(bash_fillings[filling], out);
    }
    fputs(" ;;\n", out);
}

static void bash_options_write(FILE *out, enum verb verb)
{
    fprintf(out, "    '%s') words='", verb_word(verb));
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &option_rows[i];
        if (!row_goes(row, verb))
            continue;
        if (row->letter)
            fprintf(out, "-%c ", row->letter);
        fprintf(out, "--%s ", row->name);
        if (row->type == TYPE_SWITCH)
            fprintf(out, "--no-%s ", row->name);
    }
    fputs("' ;;\n", out);
}

static void bash_verb_look_write(FILE *out)
{
    fputs("    for ((i = 1; i < COMP_CWORD; i++)); do\n"
          "        case ${COMP_WORDS[i]} in\n"
          "        --)\n"
          "            if declare -F _command_offset >/dev/null; then\n"
          "                _command_offset $((i + 1))\n"
          "            else\n"
          "                _scalene_attach_fill -c -f\n"
          "            fi\n"
          "            return ;;\n"
          "        ",
          out);
    verbs_write(out, " | ");
    fputs(") verb=${COMP_WORDS[i]}; break ;;\n"
          "        esac\n"
          "    done\n",
          out);
}

/* What stands where no option does. */
static void bash_words_write(FILE *out)
{
    fputs("    if [[ $current != -* ]]; then\n"
          "        case $verb in\n"
          "        '') words='",
          out);
    verbs_write(out, " ");
    fprintf(out, "' ;;\n        document) words='%s' ;;\n", documents);
    fputs("        *) _scalene_attach_files -f; return ;;\n"
          "        esac\n"
          "    fi\n"
          "    _scalene_attach_fill -W \"$words\"\n",
          out);
}

void completion_write_bash(FILE *out)
{
    fputs("# bash completion for scalene-attach: scalene-attach document bash\n"
          "_scalene_attach_fill() { mapfile -t COMPREPLY < <(compgen \"$@\" -- \"$current\"); }\n"
          "_scalene_attach_files() {\n"
          "    compopt -o filenames 2>/dev/null\n"
          "    _scalene_attach_fill \"$@\"\n"
          "}\n"
          "_scalene_attach() {\n"
          "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    local verb= words= i\n"
          "    COMPREPLY=()\n"
          "    [[ $current == = ]] && current=\n"
          "    [[ $previous == = ]] && previous=${COMP_WORDS[COMP_CWORD - 2]}\n",
          out);
    bash_verb_look_write(out);
    fputs("    case $verb:$previous in\n", out);
    for (enum verb verb = 0; verb < VERB_COUNT; verb++)
        for (size_t i = 0; verb_has_word(verb) && i < OPTION_COUNT; i++)
            if (option_rows[i].metavar && row_goes(&option_rows[i], verb))
                bash_value_write(out, verb, &option_rows[i]);
    fputs("    esac\n    case $verb in\n", out);
    for (enum verb verb = 0; verb < VERB_COUNT; verb++)
        if (verb_has_word(verb))
            bash_options_write(out, verb);
    fputs("    esac\n", out);
    bash_words_write(out);
    fputs("} &&\n    complete -F _scalene_attach scalene-attach\n", out);
}

/* ---- zsh ---- */

static const char *const zsh_fillings[] = {
    [FILL_NOTHING] = "",         [FILL_FILE] = "_files",
    [FILL_FOLDER] = "_files -/", [FILL_COMMAND] = "_command_names -e",
    [FILL_PROCESS] = "_pids",
};

static const char zsh_escaped[] = "[]:\\";

/* Behind the names: the help, and what the value may be. */
static void zsh_rest_write(FILE *out, const struct option_row *row)
{
    fputs("'[", out);
    quoted_write(out, row->help, zsh_escaped);
    fputc(']', out);
    if (row->metavar) {
        fputc(':', out);
        quoted_write(out, row->metavar, zsh_escaped);
        fputc(':', out);
        if (option_kind(row)->filling == FILL_WORD) {
            fputc('(', out);
            words_write(out, row);
            fputc(')', out);
        } else {
            fputs(zsh_fillings[option_kind(row)->filling], out);
        }
    }
    fputs("' \\\n", out);
}

static void zsh_option_write(FILE *out, const struct option_row *row)
{
    const char *star = option_kind(row)->repeats ? "*" : "";
    const char *equals = row->metavar ? "=" : "";
    fputs("        ", out);
    if (row->letter)
        fprintf(out, "%s{-%c,--%s%s}", *star ? "\\*" : "", row->letter, row->name, equals);
    else
        fprintf(out, "'%s--%s%s'", star, row->name, equals);
    zsh_rest_write(out, row);
    if (row->type == TYPE_SWITCH) {
        fprintf(out, "        '--no-%s'", row->name);
        zsh_rest_write(out, row);
    }
}

static void zsh_verbs_write(FILE *out)
{
    fputs("'1:command:((", out);
    for (size_t i = 1; i < VERB_COUNT; i++) {
        if (!verb_rows[i].word)
            continue;
        fprintf(out, "%s\\:\"", verb_rows[i].word);
        quoted_write(out, verb_rows[i].help, "[]:\\`");
        fputs("\" ", out);
    }
    fputs("))'", out);
}

static void zsh_verb_write(FILE *out, enum verb verb)
{
    fprintf(out, "    '%s')\n        _arguments -s : \\\n", verb_word(verb));
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (row_goes(&option_rows[i], verb))
            zsh_option_write(out, &option_rows[i]);
    fputs("        ", out);
    if (verb == VERB_NONE)
        zsh_verbs_write(out);
    else if (verb_rows[verb].words == WORDS_CHOICE)
        fprintf(out, "'1: :' '2:form:(%s)'", documents);
    else
        fputs(verb_rows[verb].words == WORDS_NONE ? "'1: :'" : "'1: :' '*:file:_files'", out);
    fputs(" ;;\n", out);
}

void completion_write_zsh(FILE *out)
{
    fputs("#compdef scalene-attach\n"
          "# zsh completion for scalene-attach: scalene-attach document zsh\n"
          "_scalene-attach() {\n"
          "    local verb= i\n"
          "    for ((i = 2; i < CURRENT; i++)); do\n"
          "        case $words[i] in\n"
          "        (--) shift $i words; ((CURRENT -= i)); _normal; return ;;\n"
          "        (",
          out);
    verbs_write(out, "|");
    fputs(") verb=$words[i]; break ;;\n"
          "        esac\n"
          "    done\n"
          "    case $verb in\n",
          out);
    for (enum verb verb = 0; verb < VERB_COUNT; verb++)
        if (verb_has_word(verb))
            zsh_verb_write(out, verb);
    fputs("    esac\n"
          "}\n"
          "if [[ $funcstack[1] == _scalene-attach ]]; then\n"
          "    _scalene-attach \"$@\"\n"
          "else\n"
          "    compdef _scalene-attach scalene-attach\n"
          "fi\n",
          out);
}

/* ---- fish ---- */

static const char *const fish_fillings[] = {
    [FILL_NOTHING] = "-x",
    [FILL_FILE] = "-r -F",
    [FILL_FOLDER] = "-x -a '(__fish_complete_directories)'",
    [FILL_COMMAND] = "-x -a '(__fish_complete_command)'",
    [FILL_PROCESS] = "-x -a '(__fish_complete_pids)'",
};

static void fish_help_write(FILE *out, const char *help)
{
    fputs(" -d '", out);
    for (; *help; help++)
        fprintf(out, "%s%c", *help == '\'' || *help == '\\' ? "\\" : "", *help);
    fputs("'\n", out);
}

/* When the row is offered: without a verb, with one of its verbs, or both. */
static void fish_condition_write(FILE *out, const struct option_row *row)
{
    const char *between = "";
    fputs(" -n '", out);
    if (row->verbs & WORDLESS) {
        fputs("not __fish_seen_subcommand_from ", out);
        verbs_write(out, " ");
        between = "; or ";
    }
    for (enum verb verb = 1; verb < VERB_COUNT; verb++) {
        if (!verb_rows[verb].word || !option_goes_with(row, verb))
            continue;
        fprintf(out, "%s__fish_seen_subcommand_from %s", between, verb_rows[verb].word);
        between = "; or ";
    }
    fputc('\'', out);
}

static void fish_option_write(FILE *out, const struct option_row *row, const char *prefix)
{
    fputs("complete -c scalene-attach", out);
    fish_condition_write(out, row);
    fprintf(out, " -l %s%s", prefix, row->name);
    if (row->letter)
        fprintf(out, " -s %c", row->letter);
    if (row->metavar && option_kind(row)->filling == FILL_WORD) {
        fputs(" -x -a '", out);
        words_write(out, row);
        fputc('\'', out);
    } else if (row->metavar) {
        fprintf(out, " %s", fish_fillings[option_kind(row)->filling]);
    }
    fish_help_write(out, row->help);
}

/* What a verb's own words may be. */
static void fish_words_write(FILE *out, enum verb verb)
{
    if (verb_rows[verb].words == WORDS_NONE)
        return;
    fprintf(out, "complete -c scalene-attach -n '__fish_seen_subcommand_from %s' ",
            verb_rows[verb].word);
    if (verb_rows[verb].words == WORDS_CHOICE)
        fprintf(out, "-f -a '%s'\n", documents);
    else
        fputs("-F\n", out);
}

static void fish_verbs_write(FILE *out)
{
    for (enum verb verb = 1; verb < VERB_COUNT; verb++) {
        if (!verb_rows[verb].word)
            continue;
        fprintf(out, "complete -c scalene-attach -n __fish_use_subcommand -f -a %s",
                verb_rows[verb].word);
        fish_help_write(out, verb_rows[verb].help);
        fish_words_write(out, verb);
    }
}

void completion_write_fish(FILE *out)
{
    fputs("# fish completion for scalene-attach: scalene-attach document fish\n"
          "complete -c scalene-attach -f\n",
          out);
    fish_verbs_write(out);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        fish_option_write(out, &option_rows[i], "");
        if (option_rows[i].type == TYPE_SWITCH)
            fish_option_write(out, &option_rows[i], "no-");
    }
}
