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

// As many rows as make up a chunk with what is left of them.
INLINE void sharing_rows(const struct type *t, const unsigned char *const *row, size_t n_parts,
                         size_t k, const struct st_blocks_chunk *x, size_t n_columns,
                         float *const *y, size_t y_col) {
    const size_t n_rows = ST_BLOCKS_PARTS / n_parts;
    const unsigned char *tail[SHARING];
    size_t n_chunks = st_blocks_chunks(k), whole = k / ST_BLOCKS_CHUNK, r = 0;
    sums sum[SHARING][FEW];
    UNROLLED for (size_t i = 0; i < n_rows; i++) {
        tail[i] = row[i] + whole * t->chunk_bytes;
        COLUMN_BY_COLUMN for (size_t c = 0; c < n_columns; c++) sum[i][c] = sums_zero();
    }
#ifdef TWO_ROWS
    if (n_columns == 1)
        UNROLLED for (; r < n_rows; r += 2) for (size_t i = 0; i < whole; i++)
            add_arranged_rows(t, row[r] + i * t->chunk_bytes, row[r + 1] + i * t->chunk_bytes,
                              x + i, &sum[r][0], &sum[r + 1][0]);
#endif
    UNROLLED for (; r < n_rows; r++) for (size_t i = 0; i < whole; i++)
        add_whole(t, row[r] + i * t->chunk_bytes, x + i, n_chunks, n_columns, sum[r]);
    add_shared_tail(t, tail, n_parts, x + whole, n_chunks, n_columns, sum);
    UNROLLED for (size_t i = 0; i < n_rows; i++)
        COLUMN_BY_COLUMN for (size_t c = 0; c < n_columns; c++) y[i][c * y_col] =
            sums_total(&sum[i][c], false);
}

// Rows [first, end) by as many as share a chunk, of two streams n_apart rows apart, or of one if
// that is 0. Returns the first that was not taken.
INLINE size_t share_rows(const struct type *t, const unsigned char *w, size_t row_bytes,
                         size_t first, size_t end, size_t n_apart, size_t n_parts, size_t k,
                         const struct st_blocks_chunk *x, size_t n_columns, float *y,
                         size_t y_col) {
    const size_t n_rows = ST_BLOCKS_PARTS / n_parts, n = n_apart ? n_rows / 2 : n_rows;
    for (; first + n <= end; first += n) {
        const unsigned char *row[SHARING];
        float *to[SHARING];
        UNROLLED for (size_t i = 0; i < n_rows; i++) {
            size_t at = n_apart ? first + i / 2 + i % 2 * n_apart : first + i;
            row[i] = w + at * row_bytes;
            to[i] = y + at;
        }
        sharing_rows(t, row, n_parts, k, x, n_columns, to, y_col);
    }
    return first;
}
