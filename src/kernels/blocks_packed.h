// SPDX-License-Identifier: Apache-2.0
// Panels (blocks_panels.h) straight from packed codes: bytes are transposed as the file has them,
// before they become two codes each, and so are the halves that blocks of 32 begin with.
//
// The including file has what the functions called lanes_... do with the vectors of vi_columns().

// As pack_fn.
#define PACK(type)                                                                                 \
    INLINE bool pack_##type(const unsigned char *b, size_t row_bytes, size_t n, struct panel *to)

// 16 bytes at b with the codes of groups of 4 elements, and in their upper halves of those `apart`
// groups behind. Of all of them the fifth bits are `fifths` and the values those of `table`, unless
// NULL.
INLINE void pack_nibbles(const unsigned char *b, size_t row_bytes, size_t apart,
                         const lanes *fifths, const uint8_t *table,
                         unsigned char (*code)[LANES][4]) {
    lanes column[4];
    vi_columns(b, row_bytes, column);
    UNROLLED for (size_t i = 0; i < 4; i++) UNROLLED for (size_t high = 0; high < 2; high++) {
        size_t group = i + high * apart;
        lanes v = high ? lanes_high(column[i]) : lanes_low(column[i]);
        if (fifths) v = lanes_add_fifths(v, *fifths, group);
        lanes_store(code[group], table ? lanes_lookup(table, v) : v);
    }
}

// ---- Blocks of 32

// Part p has its 16 bytes at b + p * stride.
INLINE void pack_blocks(const unsigned char *b, size_t row_bytes, size_t n, size_t stride,
                        const uint8_t *table, struct panel *to) {
    for (size_t p = 0; p < n; p++)
        pack_nibbles(b + p * stride, row_bytes, PART_GROUPS / 2, NULL, table,
                     to->code + p * PART_GROUPS);
}
// The 32 fifth bits come before them.
INLINE void pack_blocks_5(const unsigned char *b, size_t row_bytes, size_t n, size_t stride,
                          struct panel *to) {
    for (size_t p = 0; p < n; p++) {
        lanes column[4];
        vi_columns(b + p * stride, row_bytes, column);
        pack_nibbles(b + p * stride + 4, row_bytes, PART_GROUPS / 2, &column[0], NULL,
                     to->code + p * PART_GROUPS);
    }
}
// The half that begins a block is its scale; its minimum is `factor` times that, or minus the next
// half if factor is 0.
INLINE void pack_scales(const unsigned char *b, size_t row_bytes, size_t n, size_t stride,
                        float factor, struct panel *to) {
    for (size_t p = 0; p < n; p++) {
        lanes column[4];
        vi_columns(b + p * stride, row_bytes, column);
        floats scale = lanes_first_halves(column[0]);
        floats_store(to->scale[p], scale);
        floats_store(to->minimum[p], factor != 0.0f ? floats_mul(scale, floats_set1(factor))
                                                    : floats_mul(lanes_second_halves(column[0]),
                                                                 floats_set1(-1.0f)));
    }
}

PACK(q4_0) {
    pack_blocks(b + 2, row_bytes, n, 18, NULL, to);
    pack_scales(b, row_bytes, n, 18, 8.0f, to);
    return true;
}
PACK(q4_1) {
    pack_blocks(b + 4, row_bytes, n, 20, NULL, to);
    pack_scales(b, row_bytes, n, 20, 0.0f, to);
    return true;
}
PACK(q5_0) {
    pack_blocks_5(b + 2, row_bytes, n, 22, to);
    pack_scales(b, row_bytes, n, 22, 16.0f, to);
    return true;
}
PACK(q5_1) {
    pack_blocks_5(b + 4, row_bytes, n, 24, to);
    pack_scales(b, row_bytes, n, 24, 0.0f, to);
    return true;
}
#ifdef PACKED_BYTES
PACK(q8_0) {
    for (size_t half = 0; half < 2 * n; half++) {
        lanes column[4];
        vi_columns(b + half / 2 * 34 + 2 + half % 2 * 16, row_bytes, column);
        UNROLLED for (size_t i = 0; i < 4; i++)
            lanes_store(to->code[4 * half + i], lanes_of_signed(column[i]));
    }
    pack_scales(b, row_bytes, n, 34, (float)EIGHT_BITS_ZERO, to);
    return true;
}
#endif
PACK(iq4_nl) {
    pack_blocks(b + 2, row_bytes, n, 18, iq4_codes, to);
    pack_scales(b, row_bytes, n, 18, (float)EIGHT_BITS_ZERO, to);
    return true;
}
PACK(mxfp4) {
    pack_blocks(b + 1, row_bytes, n, 17, mxfp4_codes, to);
    return false;
}

// ---- Blocks of 256

PACK(q4_k) {
    (void)n;
    for (size_t i = 0; i < 2 * PAIRS; i++)
        pack_nibbles(b + 16 + 16 * i, row_bytes, PART_GROUPS, NULL, NULL,
                     to->code + i / 2 * 2 * PART_GROUPS + i % 2 * PART_GROUPS / 2);
    return false;
}
PACK(iq4_xs) {
    (void)n;
    pack_blocks(b + 8, row_bytes, ST_BLOCKS_PARTS, 16, iq4_codes, to);
    return false;
}
