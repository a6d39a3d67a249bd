// SPDX-License-Identifier: Apache-2.0
// Where types have what blocks_arranged.h and blocks_arranged_512.h put into order, for
// blocks_body.h: n parts of a chunk at b.

INLINE arranged arrange_q4_0(const unsigned char *b, size_t n) {
    return nibbles_by_blocks(b, 2, 18, n);
}
INLINE arranged arrange_q4_1(const unsigned char *b, size_t n) {
    return nibbles_by_blocks(b, 4, 20, n);
}
INLINE arranged arrange_q5_0(const unsigned char *b, size_t n) {
    return with_fifths(nibbles_by_blocks(b, 6, 22, n), b, 2, 22, n);
}
INLINE arranged arrange_q5_1(const unsigned char *b, size_t n) {
    return with_fifths(nibbles_by_blocks(b, 8, 24, n), b, 4, 24, n);
}

#ifdef ARRANGED_ODD
INLINE arranged arrange_mxfp4(const unsigned char *b, size_t n) {
    return with_table(nibbles_by_blocks(b, 1, 17, n), mxfp4_codes);
}
INLINE arranged arrange_q4_k(const unsigned char *b, size_t n) {
    (void)n;
    return nibbles_by_pairs(b + 16);
}
#endif
