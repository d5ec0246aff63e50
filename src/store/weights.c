/* SPDX-License-Identifier: MIT */
#include "store/weights.h"

#include <stdint.h>

#include "kernels/kernels.h"
#include "store/codec.h"
#include "store/draws.h"

static const struct {
    const char *name;
    lst_codec weight;
    int master; /* -1: none */
} forms[LST_N_WEIGHT_FORMS] = {
#define LST_X(id, name, weight, master, text) {name, weight, master},
    LST_WEIGHT_FORM_LIST(LST_X)
#undef LST_X
};

const char *lst_weight_form_name(lst_weight_form form)
{
    return (unsigned)form < LST_N_WEIGHT_FORMS ? forms[form].name : "unknown";
}

lst_codec lst_weight_form_codec(lst_weight_form form)
{
    return forms[form].weight;
}

lst_codec lst_weight_form_master(lst_weight_form form)
{
    return forms[form].master < 0 ? LST_N_CODECS : (lst_codec)forms[form].master;
}

void lst__weights_decode_visible(const lst__weights *w, size_t first, size_t n, float *out)
{
    lst__codec(forms[w->form].weight)->decode(w->weights, w->n_elems, first, n, out);
}

void lst__weights_decode(const lst__weights *w, size_t first, size_t n, float *out)
{
    if (w->form == LST_WEIGHT_SPLIT32) {
        const uint16_t *hi = w->weights, *lo = w->master;
        lst__kernels_get()->split32_to_f32(hi + first, lo + first, out, n);
    } else if (w->form == LST_WEIGHT_SPLIT24) {
        const uint16_t *hi = w->weights;
        const uint8_t *lo = w->master;
        lst__kernels_get()->split24_to_f32(hi + first, lo + first, out, n);
    } else if (forms[w->form].master >= 0) {
        lst__codec((lst_codec)forms[w->form].master)->decode(w->master, w->n_elems, first, n, out);
    } else {
        lst__weights_decode_visible(w, first, n, out);
    }
}

/* The forms that draw. */
static void encode_stochastic(const lst__weights *w, size_t first, size_t n, const float *in,
                              const lst__rounding *rounding)
{
    const lst__kernels *k = lst__kernels_get();
    uint16_t *hi = w->weights;
    uint8_t *lo = w->master;
    for (size_t done = 0; done < n;) {
        const lst__draws d = lst__draws_of(rounding, first + done, n - done);
        if (w->form == LST_WEIGHT_SPLIT24)
            k->f32_to_split24(in + done, hi + first + done, lo + first + done, d.n, d.key, d.first);
        else
            k->f32_to_bf16_stochastic(in + done, hi + first + done, d.n, d.key, d.first);
        done += d.n;
    }
}

void lst__weights_encode(const lst__weights *w, size_t first, size_t n, const float *in, const lst__rounding *rounding)
{
    if (w->form == LST_WEIGHT_SPLIT24 || w->form == LST_WEIGHT_BF16_SR) {
        encode_stochastic(w, first, n, in, rounding);
        return;
    }
    if (w->form == LST_WEIGHT_SPLIT32) {
        uint16_t *hi = w->weights, *lo = w->master;
        lst__kernels_get()->f32_to_split32(in, hi + first, lo + first, n);
        return;
    }
    lst__codec(forms[w->form].weight)->encode(w->weights, w->n_elems, first, n, in, rounding);
    if (forms[w->form].master >= 0)
        lst__codec((lst_codec)forms[w->form].master)->encode(w->master, w->n_elems, first, n, in, rounding);
}
