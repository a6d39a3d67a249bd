// SPDX-License-Identifier: Apache-2.0
// Rows that share a chunk, for blocks_few.h. Behind a row's whole chunks some parts may be left.
// Two or four of them take nearly as long as a chunk, so those of four or two rows are multiplied
// as one, with inputs that have their last parts as often. Sums stay where they would be alone.
//
// The including file has gather_blocks(), which puts blocks of several rows one behind the other,
// and sums_of_parts() and sums_set_parts(), for those of a chunk's eight parts; blocks_x86.h has
// what is done with these.

// Adds the last n_parts parts of rows, two or four, at tail[i]: as many rows as make up a chunk. x:
// the last chunk of each column.
INLINE void add_shared_tail(const struct type *t, const unsigned char *const *tail, size_t n_parts,
                            const struct st_blocks_chunk *x, size_t x_col, size_t n_columns,
                            sums (*sum)[FEW]) {
    const size_t n_rows = ST_BLOCKS_PARTS / n_parts, block = t->chunk_bytes / ST_BLOCKS_PARTS;
    _Alignas(64) unsigned char blocks[ST_BLOCKS_PARTS * 24];
    part_sums parts[FEW];
    struct unpacked u;
    UNROLLED for (size_t r = 0; r < n_rows; r++) prefetch(tail[r], n_parts * block);
    gather_blocks(tail, n_rows, n_parts, block, blocks);
    arranged v = t->arrange(blocks, ST_BLOCKS_PARTS);
    COLUMN_BY_COLUMN for (size_t c = 0; c < n_columns; c++) parts[c] =
        arranged_sums(&v, x + c * x_col, t->bits, false);
    t->unpack(blocks, ST_BLOCKS_PARTS, PAIRS, &u);
    COLUMN_BY_COLUMN for (size_t c = 0; c < n_columns; c++) {
        const struct st_blocks_chunk *of = x + c * x_col;
        halves row[SHARING], all;
        UNROLLED for (size_t r = 0; r < n_rows; r++) row[r] = sums_of_parts(&sum[r][c]);
        all = halves_shared(row, n_parts);
        all = halves_add_parts(all, parts[c], u.scale, u.minimum, halves_repeat(of->scale, n_parts),
                               halves_repeat(of->sum, n_parts), true);
        halves_share_out(all, n_parts, row);
        UNROLLED for (size_t r = 0; r < n_rows; r++) sums_set_parts(&sum[r][c], row[r]);
    }
}

// Whole chunks of rows, into sum[n_rows]. For several columns rows have one copy of the code: it is
// built for each type, and sanitizers make it long.
INLINE void add_whole_chunks(const struct type *t, const unsigned char *const *row, size_t n_rows,
                             size_t whole, const struct st_blocks_chunk *x, size_t x_col,
                             size_t n_columns, sums (*sum)[FEW]) {
#ifdef TWO_ROWS
    UNROLLED for (size_t r = 0; r < n_rows && n_columns == 1; r += 2) {
        sums a = sums_zero(), b = sums_zero();
        for (size_t i = 0; i < whole; i++) {
            prefetch_rows(row[r], row[r + 1], i, t->chunk_bytes);
            add_arranged_rows(t, row[r] + i * t->chunk_bytes, row[r + 1] + i * t->chunk_bytes,
                              x + i, &a, &b);
        }
        sum[r][0] = a;
        sum[r + 1][0] = b;
    }
    if (n_columns == 1) return;
#endif
    for (size_t r = 0; r < n_rows; r++) {
        sums of_row[FEW];
        COLUMN_BY_COLUMN for (size_t c = 0; c < n_columns; c++) of_row[c] = sums_zero();
        for (size_t i = 0; i < whole; i++)
            add_whole(t, row[r] + i * t->chunk_bytes, x + i, x_col, n_columns, of_row);
        COLUMN_BY_COLUMN for (size_t c = 0; c < n_columns; c++) sum[r][c] = of_row[c];
    }
}

// Rows by as many as share a chunk; of one column, first from two streams. Returns how many rows
// were taken. n_parts and n_columns are constants here.
INLINE size_t share_rows(const struct type *t, const unsigned char *w, size_t row_bytes,
                         size_t n_rows, size_t n_parts, size_t k, const struct st_blocks_chunk *x,
                         size_t n_columns, float *y, size_t y_col) {
    const size_t n = ST_BLOCKS_PARTS / n_parts;
    size_t n_chunks = st_blocks_chunks(k), whole = k / ST_BLOCKS_CHUNK, taken = 0;
    size_t apart = n_columns == 1 ? st_stream_rows(n_rows, row_bytes) / n * n : 0;
    for (; taken + n <= n_rows; taken += n) {
        const unsigned char *row[SHARING], *tail[SHARING];
        size_t at[SHARING];
        sums sum[SHARING][FEW];
        UNROLLED for (size_t i = 0; i < n; i++) {
            at[i] = taken < 2 * apart ? taken / 2 + i / 2 + i % 2 * apart : taken + i;
            row[i] = w + at[i] * row_bytes;
            tail[i] = row[i] + whole * t->chunk_bytes;
        }
        add_whole_chunks(t, row, n, whole, x, n_chunks, n_columns, sum);
        add_shared_tail(t, tail, n_parts, x + whole, n_chunks, n_columns, sum);
        UNROLLED for (size_t i = 0; i < n; i++)
            COLUMN_BY_COLUMN for (size_t c = 0; c < n_columns; c++) y[c * y_col + at[i]] =
                sums_total(&sum[i][c], false);
    }
    return taken;
}

#define SHARE(columns)                                                                             \
    case columns:                                                                                  \
        return share_rows(t, w, row_bytes, n_rows, n_parts, k, x, columns, y, y_col);
INLINE size_t share_some(const struct type *t, const unsigned char *w, size_t row_bytes,
                         size_t n_rows, size_t n_parts, size_t k, const struct st_blocks_chunk *x,
                         size_t n_columns, float *y, size_t y_col) {
    switch (n_columns) {
        SHARE(1)
        SHARE(2)
        SHARE(3)
        SHARE(4)
    }
    return 0;
}

// Of up to FEW columns; returns how many rows were taken, 0 if they do not share chunks.
INLINE size_t share_chunks(const struct type *t, const unsigned char *w, size_t row_bytes,
                           size_t n_rows, size_t k, const struct st_blocks_chunk *x,
                           size_t n_columns, float *y, size_t y_col) {
    size_t left = k % ST_BLOCKS_CHUNK / ST_BLOCKS_PART;
    if (!t->arrange || t->items == ST_BLOCKS_CHUNK) return 0;
    if (left == 2) return share_some(t, w, row_bytes, n_rows, 2, k, x, n_columns, y, y_col);
    if (left == 4) return share_some(t, w, row_bytes, n_rows, 4, k, x, n_columns, y, y_col);
    return 0;
}
