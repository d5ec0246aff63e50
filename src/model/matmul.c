/* SPDX-License-Identifier: MIT */
#include "model/matmul.h"

#include <cblas.h>
#include <string.h>

#include "plan/activations.h"

#define SUM_COLS 128
#define MOST_ROWS 512 /* of a tile */
#define MOST_COLS 1024

void model_matmul_init(void)
{
    openblas_set_num_threads(1);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- tiles ---- */

/* The result is cut into tiles, each one sgemm that packs its own operands: a tile of m x n costs m n K multiplications
 * and (m + n) K elements of packing, about 30 times dearer each (OpenBLAS 0.3.21 on Skylake; bench/training.md). Large,
 * square tiles are therefore cheap, but at least 8 are wanted so that a few threads stay busy, and a number that 4
 * divides leaves none idle at the end. Only the shape decides, never the number of threads. */
typedef struct tiling {
    size_t high, wide;
} tiling;

#define PACKING 30.0
#define LEAST_TILES 8

static size_t sixteens(size_t n)
{
    return (n + 15) / 16 * 16;
}

/* With low-precision weights every block of rows widens the panel again: `least_blocks` wants as few as can be. */
static tiling tiles_of(size_t rows, size_t cols, bool least_blocks)
{
    tiling best = {0, 0};
    double best_cost = 0.0;
    size_t first = model_tasks(rows, MOST_ROWS), last = least_blocks ? first : first + LEAST_TILES;
    for (size_t blocks = first; blocks <= last; blocks++) {
        size_t panels = model_tasks(cols, MOST_COLS), wanted = model_tasks(LEAST_TILES, blocks);
        panels = panels > wanted ? panels : wanted;
        tiling t = {sixteens(model_tasks(rows, blocks)), sixteens(model_tasks(cols, panels))};
        size_t n = model_tasks(rows, t.high) * model_tasks(cols, t.wide);
        double idle = (double)((n + 3) / 4 * 4) / (double)n;
        double cost = (1.0 + PACKING / (double)t.high + PACKING / (double)t.wide) * idle;
        if (best.high == 0 || cost < best_cost) {
            best = t;
            best_cost = cost;
        }
    }
    return best;
}

/* ---- y[rows, cols] = x[rows, depth] * B, B being stored weights ---- */

typedef struct product {
    const model_work *work;
    model_rows y, x, residual;
    size_t rows, cols, depth, step; /* step: depth of one sgemm */
    tiling tile;
    const void *weight, *bias;
    lst_codec codec;
    bool cols_first; /* stored [cols, depth]; otherwise [depth, cols] */
    bool add;
} product;

/* Columns c.. (n) at depth d.. (k) of the weights as float32; *ld becomes the row stride. */
static const float *panel_of(const product *p, size_t c, size_t n, size_t d, size_t k, float *scratch, size_t *ld)
{
    size_t stride = p->cols_first ? p->depth : p->cols;
    size_t row = p->cols_first ? c : d, col = p->cols_first ? d : c;
    size_t n_rows = p->cols_first ? n : k, n_cols = p->cols_first ? k : n;
    if (p->codec == LST_CODEC_F32) {
        *ld = stride;
        return (const float *)p->weight + row * stride + col;
    }
    *ld = n_cols;
    for (size_t r = 0; r < n_rows; r++)
        model_widen(scratch + r * n_cols, p->weight, p->codec, (row + r) * stride + col, n_cols);
    return scratch;
}

static void product_epilogue(const product *p, size_t row, size_t m, size_t col, size_t n)
{
    float bias[MOST_COLS];
    if (p->bias)
        model_widen(bias, p->bias, p->codec, col, n);
    for (size_t r = row; r < row + m; r++) {
        float *y = p->y.data + r * p->y.stride + col;
        if (p->bias)
            p->work->loops->add(y, bias, n);
        if (p->residual.data)
            p->work->loops->add(y, p->residual.data + r * p->residual.stride + col, n);
    }
}

static void product_task(void *context, size_t index, size_t worker)
{
    const product *p = context;
    size_t n_panels = model_tasks(p->cols, p->tile.wide);
    size_t row = index / n_panels * p->tile.high, col = index % n_panels * p->tile.wide;
    size_t m = least(p->rows - row, p->tile.high), n = least(p->cols - col, p->tile.wide);
    for (size_t d = 0; d < p->depth; d += p->step) {
        size_t k = least(p->depth - d, p->step), ld;
        const float *b = panel_of(p, col, n, d, k, model_scratch(p->work, worker), &ld);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, p->cols_first ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k,
                    1.0f, p->x.data + row * p->x.stride + d, (int)p->x.stride, b, (int)ld, d || p->add ? 1.0f : 0.0f,
                    p->y.data + row * p->y.stride + col, (int)p->y.stride);
    }
    if (p->bias || p->residual.data)
        product_epilogue(p, row, m, col, n);
}

static void run_product(product *p)
{
    bool widens = p->codec != LST_CODEC_F32;
    p->tile = tiles_of(p->rows, p->cols, widens);
    p->step = widens ? LST__PANEL_ELEMS / p->tile.wide : p->depth;
    lst_pool_run(p->work->pool, model_tasks(p->rows, p->tile.high) * model_tasks(p->cols, p->tile.wide), product_task,
                 p);
}

void model_linear_forward(const model_work *work, const model_linear *linear, model_rows y, model_rows x, size_t rows,
                          model_rows residual)
{
    run_product(&(product){.work = work,
                           .y = y,
                           .x = x,
                           .residual = residual,
                           .rows = rows,
                           .cols = linear->out,
                           .depth = linear->in,
                           .weight = linear->weight,
                           .bias = linear->bias,
                           .codec = linear->codec,
                           .cols_first = !linear->conv1d});
}

void model_linear_backward_input(const model_work *work, const model_linear *linear, model_rows dx, model_rows dy,
                                 size_t rows, bool add)
{
    run_product(&(product){.work = work,
                           .y = dx,
                           .x = dy,
                           .rows = rows,
                           .cols = linear->in,
                           .depth = linear->out,
                           .weight = linear->weight,
                           .codec = linear->codec,
                           .cols_first = linear->conv1d,
                           .add = add});
}

/* ---- the same, for a long sum: parts of the depth side by side ---- */

typedef struct deep_product {
    product p;
    float *parts;
    size_t part_depth;
} deep_product;

/* One part of the depth, one tile of columns; as wide as a widened panel of DEEP_STEP rows may be. */
#define DEEP_STEP (LST__PANEL_ELEMS / MOST_COLS)

static void deep_task(void *context, size_t index, size_t worker)
{
    const deep_product *dp = context;
    const product *p = &dp->p;
    size_t n_cols = model_tasks(p->cols, MOST_COLS), part = index / n_cols, col = index % n_cols * MOST_COLS;
    size_t n = least(p->cols - col, MOST_COLS), begin = least(part * dp->part_depth, p->depth);
    size_t end = least(begin + dp->part_depth, p->depth), step = p->codec == LST_CODEC_F32 ? dp->part_depth : DEEP_STEP;
    float *y = dp->parts + part * p->rows * p->cols + col;
    for (size_t r = 0; begin == end && r < p->rows; r++)
        memset(y + r * p->cols, 0, n * sizeof *y);
    for (size_t d = begin; d < end; d += step) {
        size_t k = least(end - d, step), ld;
        const float *b = panel_of(p, col, n, d, k, model_scratch(p->work, worker), &ld);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, p->cols_first ? CblasTrans : CblasNoTrans, (int)p->rows, (int)n,
                    (int)k, 1.0f, p->x.data + d, (int)p->x.stride, b, (int)ld, d == begin ? 0.0f : 1.0f, y,
                    (int)p->cols);
    }
}

static void deep_sum_task(void *context, size_t index, size_t worker)
{
    const deep_product *dp = context;
    const product *p = &dp->p;
    (void)worker;
    for (size_t r = index * MODEL_TASK_ROWS, end = least(r + MODEL_TASK_ROWS, p->rows); r < end; r++) {
        float *y = p->y.data + r * p->y.stride;
        memcpy(y, dp->parts + r * p->cols, p->cols * sizeof *y);
        for (size_t part = 1; part < LST__HEAD_PARTS; part++)
            p->work->loops->add(y, dp->parts + (part * p->rows + r) * p->cols, p->cols);
    }
}

void model_linear_backward_input_deep(const model_work *work, const model_linear *linear, model_rows dx, model_rows dy,
                                      size_t rows, float *parts)
{
    deep_product dp = {.p = {.work = work,
                             .y = dx,
                             .x = dy,
                             .rows = rows,
                             .cols = linear->in,
                             .depth = linear->out,
                             .weight = linear->weight,
                             .codec = linear->codec,
                             .cols_first = linear->conv1d},
                       .parts = parts,
                       .part_depth = model_tasks(linear->out, LST__HEAD_PARTS)};
    lst_pool_run(work->pool, LST__HEAD_PARTS * model_tasks(linear->in, MOST_COLS), deep_task, &dp);
    lst_pool_run(work->pool, model_tasks(rows, MODEL_TASK_ROWS), deep_sum_task, &dp);
}

/* ---- c[p, q] = a[rows, p]^T b[rows, q] ---- */

typedef struct outer {
    float *c;
    model_rows a, b;
    size_t rows, p, q;
    tiling tile;
    bool add;
} outer;

static void outer_task(void *context, size_t index, size_t worker)
{
    const outer *o = context;
    (void)worker;
    size_t n_cols = model_tasks(o->q, o->tile.wide);
    size_t row = index / n_cols * o->tile.high, col = index % n_cols * o->tile.wide;
    size_t m = least(o->p - row, o->tile.high), n = least(o->q - col, o->tile.wide);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)m, (int)n, (int)o->rows, 1.0f, o->a.data + row,
                (int)o->a.stride, o->b.data + col, (int)o->b.stride, o->add ? 1.0f : 0.0f, o->c + row * o->q + col,
                (int)o->q);
}

/* ---- db = column sums of dy ---- */

typedef struct column_sum {
    const model_work *work;
    float *sum;
    model_rows dy;
    size_t rows, cols;
    bool add;
} column_sum;

static void column_sum_task(void *context, size_t index, size_t worker)
{
    const column_sum *s = context;
    (void)worker;
    size_t col = index * SUM_COLS, n = least(s->cols - col, SUM_COLS);
    double sum[SUM_COLS] = {0};
    for (size_t r = 0; r < s->rows; r++)
        s->work->loops->sum_columns(sum, s->dy.data + r * s->dy.stride + col, n);
    for (size_t i = 0; i < n; i++)
        s->sum[col + i] = (float)(s->add ? s->sum[col + i] + sum[i] : sum[i]);
}

void model_linear_backward_weight(const model_work *work, const model_linear *linear, float *dw, float *db,
                                  model_rows dy, model_rows x, size_t rows, bool add)
{
    outer o = {.c = dw,
               .a = linear->conv1d ? x : dy,
               .b = linear->conv1d ? dy : x,
               .rows = rows,
               .p = linear->conv1d ? linear->in : linear->out,
               .q = linear->conv1d ? linear->out : linear->in,
               .add = add};
    o.tile = tiles_of(o.p, o.q, false);
    lst_pool_run(work->pool, model_tasks(o.p, o.tile.high) * model_tasks(o.q, o.tile.wide), outer_task, &o);
    if (db) {
        column_sum s = {.work = work, .sum = db, .dy = dy, .rows = rows, .cols = linear->out, .add = add};
        lst_pool_run(work->pool, model_tasks(s.cols, SUM_COLS), column_sum_task, &s);
    }
}
