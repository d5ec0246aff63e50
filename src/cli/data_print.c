/* SPDX-License-Identifier: MIT
 *
 * The lines about data that come before the first step.
 */
#include <stdio.h>

#include "cli/data_options.h"
#include "cli/print.h"

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* "345,678": more digits than a program will ever count fit. */
typedef struct digits {
    char text[32];
} digits;

static digits count(uint64_t n)
{
    digits d;
    cli_print_integer(d.text, sizeof d.text, n);
    return d;
}

static void print_encoder(const data_set *set, const data_encoder *encoder)
{
    char text[80];
    if (!encoder->tokenizer || set->kind == DATA_KIND_TOKENS)
        return;
    data_encoder_describe(encoder, text, sizeof text);
    printf("          %s; each text ends with id %d", text, (int)encoder->end);
    printf("; %s bytes of tokens in a file without a name\n", count(set->disk_bytes).text);
}

static void print_text(const char *path, const data_set *set, const data_encoder *encoder)
{
    char skipped[160];
    const data_corpus *corpus = &set->corpus;
    data_skipped_text(&corpus->skipped, skipped, sizeof skipped);
    printf("Text      %s: %zu document%s, %s bytes (skipped: %s)\n", path, corpus->n_files, plural(corpus->n_files),
           count(corpus->n_bytes).text, skipped);
    print_encoder(set, encoder);
}

static void print_token_file(const char *path, const data_set *set)
{
    printf("Tokens    %s: %s of %zu bytes each, every id within the vocabulary\n", path, count(set->file.n_tokens).text,
           set->file.width);
}

/* ---- examples ---- */

static void print_forms(const data_counts *c)
{
    for (int form = 0, n = 0; form < DATA_N_FORMS; form++)
        if (c->forms[form])
            printf("%s%s %s", n++ ? ", " : "", count(c->forms[form]).text, data_form_text((data_form)form));
}

static void print_cuts(const data_set *set, size_t seq)
{
    const data_counts *c = &set->counts;
    if (c->n_split)
        printf("          %s text%s of more than %zu tokens: in several rows, nothing is lost\n",
               count(c->n_split).text, plural(c->n_split), seq + 1);
    if (c->n_cut)
        printf("          %s example%s of more than %zu tokens: the ends cut off, %s tokens in all\n",
               count(c->n_cut).text, plural(c->n_cut), seq + 1, count(c->n_cut_tokens).text);
    if (c->n_left_out)
        printf("          %s of them left out: what counts in them was cut off\n", count(c->n_left_out).text);
}

static void print_rows(const data_set *set)
{
    const data_rows *train = &set->train_rows, *valid = &set->valid_rows;
    const size_t rows = train->packed.n_rows + valid->packed.n_rows;
    const double room = (double)rows * (double)(train->seq + 1);
    printf("          %s row%s of %zu tokens to train on", count(train->packed.n_rows).text,
           plural(train->packed.n_rows), train->seq);
    if (valid->packed.n_rows)
        printf(", %s for validation (%s examples)", count(valid->packed.n_rows).text,
               count(set->counts.n_valid_lines).text);
    printf("; %.1f %% filled\n", 100 * (double)(train->n_tokens + valid->n_tokens) / room);
}

static void print_examples(const char *path, const data_set *set, const data_encoder *encoder, bool loss_all)
{
    const data_counts *c = &set->counts;
    printf("Examples  %s: ", path);
    print_forms(c);
    printf(" in %zu file%s\n", set->corpus.n_files, plural(set->corpus.n_files));
    print_encoder(set, encoder);
    if (c->forms[DATA_FORM_TEXT] + c->forms[DATA_FORM_COMPLETION] < c->n_lines && encoder->has_chat)
        printf("          messages as %s has them (%s)\n", data_chat_name(encoder->chat), encoder->chat_from);
    printf("          %s tokens, %s to %s an example; %s count (%.1f %%): %s\n", count(c->n_tokens).text,
           count(c->shortest).text, count(c->longest).text, count(c->n_counted).text,
           100 * (double)c->n_counted / (double)c->n_tokens, loss_all ? "all but the first" : "completions");
    print_cuts(set, set->train_rows.seq);
    print_rows(set);
}

void cli_print_data(const char *path, const data_set *set, const data_encoder *encoder, bool loss_all)
{
    if (set->kind == DATA_KIND_EXAMPLES) {
        print_examples(path, set, encoder, loss_all);
        return;
    }
    if (set->kind == DATA_KIND_TEXT)
        print_text(path, set, encoder);
    else
        print_token_file(path, set);
    if (set->split.valid.n_tokens == 0)
        printf("          %s tokens\n", count(set->split.train.n_tokens).text);
    else
        printf("          %s tokens to train on, %s for validation%s\n", count(set->split.train.n_tokens).text,
               count(set->split.valid.n_tokens).text, set->split.n_shared ? " (the end of the longest document)" : "");
}
