// SPDX-License-Identifier: Apache-2.0
// All policies. policies/NAME.c defines `const struct st_policy st_policy_NAME`; the command's
// help, its parser and the library's errors take the names from here.
#ifndef ST_SCHED_POLICIES_LIST_H
#define ST_SCHED_POLICIES_LIST_H

#define ST_POLICIES(X)                                                                             \
    X(inorder)                                                                                     \
    X(ooo)                                                                                         \
    X(heft)

#define ST_DECLARE_POLICY(name) extern const struct st_policy st_policy_##name;
ST_POLICIES(ST_DECLARE_POLICY)

#endif
