// SPDX-License-Identifier: Apache-2.0
// Names of tensors by role, one table for each way to call them: those that most folders
// (st_hf_names) or GGUF files (st_gguf_names) use, and what some families have in their place.
#ifndef ST_MODEL_ARCH_NAMES_H
#define ST_MODEL_ARCH_NAMES_H

#include "model/arch.h"

// Before the names of a layer that predicts a further token and stands apart from the others.
#define ST_AHEAD_PREFIX "mtp."

extern const struct st_names st_hf_names;
extern const struct st_names st_sandwich_names;
extern const struct st_names st_gemma4_names;
extern const struct st_names st_gemma4_gguf_names;
extern const struct st_names st_gemma3n_names;
extern const struct st_names st_gemma3n_gguf_names;
extern const struct st_names st_branch_names;
extern const struct st_names st_glm4_names;
extern const struct st_names st_moe_names;
extern const struct st_names st_qwen2_moe_names;
extern const struct st_names st_glm4_moe_names;
extern const struct st_names st_ernie_moe_names;
extern const struct st_names st_gpt_oss_names;
extern const struct st_names st_phi_names;
extern const struct st_names st_stablelm_names;
extern const struct st_names st_opt_names;
extern const struct st_names st_lfm2_names;
extern const struct st_names st_lfm2_moe_names;
extern const struct st_names st_qwen35_names;
extern const struct st_names st_qwen35_moe_names;
extern const struct st_names st_qwen3next_names;
extern const struct st_names st_granite_moe_names;
extern const struct st_names st_granite_hybrid_names;
extern const struct st_names st_nemotron_h_names;
extern const struct st_names st_falcon_h1_names;
extern const struct st_names st_gguf_names;
extern const struct st_names st_qwen35_gguf_names;
extern const struct st_names st_qwen3next_gguf_names;
extern const struct st_names st_mamba_gguf_names;
extern const struct st_names st_nemotron_h_gguf_names;
extern const struct st_names st_lfm2_gguf_names;
extern const struct st_names st_post_norm_gguf_names;
extern const struct st_names st_bitnet_names, st_bitnet_gguf_names;

#endif
