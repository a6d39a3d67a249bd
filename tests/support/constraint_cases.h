// SPDX-License-Identifier: Apache-2.0
// Schemas, and texts with a mark before each: + follows the schema, - is refused, ~ is a beginning.
#ifndef TESTS_CONSTRAINT_CASES_H
#define TESTS_CONSTRAINT_CASES_H

static const struct {
    const char *schema;
    const char *texts[24];
} constraint_cases[] = {
    {"true",
     {"+null",
      "+\n  {\"a\":[1,2.5e-3,\"x\\u00e9\\ud83d\\ude00\"] , \"a\":{}}",
      "+-0.0",
      "+[[],[ ]]",
      "+\"\xf0\x9f\x98\x80\"",
      "+1E+9",
      "~",
      "~nul",
      "-01",
      "~1.",
      "-.5",
      "-+1",
      "-\"\\ud83d\"",
      "-\"\\udc00\"",
      "-\"\\u0000\"",
      "-\"\n\"",
      "-\"\xc3\"",
      "-[1,]",
      "-{,}",
      "-{\"a\"}",
      "-1 ",
      "-\n\n1"}},
    {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"string\"}"
     ",\"c\":{\"type\":\"null\"}},\"required\":[\"a\",\"c\"]}",
     {"+{\"a\":1,\"c\":null}", "+{\"a\": -5, \"b\": \"x\", \"c\": null}",
      "+{\n  \"a\": 1,\n  \"c\": null\n}", "-{}", "-{\"a\":1}", "-{\"c\":null,\"a\":1}",
      "-{\"a\":1,\"c\":null,\"d\":1}", "-{\"a\":1.5", "-{\"a\":-0", "-{\"a\":1,\"b\":\"\",\"b\"",
      "-{\"c\""}},
    {"{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{}}}",
     {"+{}", "+{\"a\":1}", "+{\"b\":1}", "+{\"a\":1,\"b\":[]}", "-{\"b\":1,\"a\":1}", "-{,\"a\"",
      "-{\"a\":1,}", "-{\"c\""}},
    {"{\"properties\":{\"ab\":{\"type\":\"integer\"},\"a\xc3\xa9\":true,\"q\\\"\":true},"
     "\"additionalProperties\":{\"type\":\"boolean\"}}",
     {"+{}", "+{\"ab\":1}", "+{\"a\":true}", "+{\"\":true}", "+{\"abc\":true,\"ac\":false}",
      "+{\"ab\":1,\"a\xc3\xaa\":true}", "+{\"q\\\"\":1}", "+{\"b\\u0061\":true}", "-{\"ab\":true",
      "-{\"ac\":1", "-{\"a\":true,\"ab\"", "-{\"a\xc3\xa9\":1,\"a\xc3\xa9\"", "-{\"\\u0061b\"",
      "-{\"x\":true,\"q\\\"\""}},
    {"{\"type\":\"object\",\"additionalProperties\":false}", {"+{}", "+{ }", "-{\"", "-[]"}},
    {"{\"type\":\"object\"}", {"+{}", "+{\"a\":{\"b\":null},\"c\":1}", "-[]", "-1", "-{1"}},
    {"{\"type\":\"object\",\"required\":[\"z\"]}",
     {"+{\"z\":1}", "+{\"z\":1,\"a\":2}", "-{}", "-{\"a\":1"}},
    {"{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":2,\"maxItems\":3}",
     {"+[1,2]", "+[1, 2, 3]", "-[]", "-[1]", "-[1,2,3,4", "-[null"}},
    {"{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"maxItems\":0}", {"+[]", "-[1"}},
    {"{\"type\":\"array\",\"minItems\":1}", {"+[1,\"a\"]", "-[]"}},
    {"{\"prefixItems\":[{\"type\":\"integer\"},{\"type\":\"null\"}],\"items\":false}",
     {"+[]", "+[1]", "+[1,null]", "-[null", "-[1,1", "-[1,null,"}},
    {"{\"prefixItems\":[{\"type\":\"integer\"}],\"items\":{\"type\":\"null\"},\"minItems\":3,"
     "\"maxItems\":4}",
     {"+[1,null,null]", "+[1,null,null,null]", "-[]", "-[1]", "-[1,null]",
      "-[1,null,null,null,null"}},
    {"{\"enum\":[\"red\",\"re\",1,10,null,{\"a\":[1]}]}",
     {"+\"red\"", "+\"re\"", "+1", "+10", "+null", "+{\"a\":[1]}", "-\"r\"", "-100", "-\"rede",
      "-{\"a\": "}},
    {"{\"type\":\"integer\",\"enum\":[1,\"a\",2.5,3.0]}", {"+1", "+3.0", "-\"a", "-2"}},
    {"{\"const\":\"x\\ny\"}", {"+\"x\\ny\"", "-\"x\\u", "-1"}},
    {"{\"anyOf\":[{\"type\":\"string\",\"maxLength\":2},{\"type\":\"integer\"},{\"const\":null}]}",
     {"+\"ab\"", "+\"\"", "+7", "+null", "-\"abc", "-true", "-[]"}},
    {"{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"k\":{\"const\":\"a\"},\"x\":{\"type\":"
     "\"integer\"}},\"required\":[\"k\",\"x\"]},{\"type\":\"object\",\"properties\":{\"k\":{"
     "\"const\":\"b\"}},\"required\":[\"k\"]}]}",
     {"+{\"k\":\"a\",\"x\":1}", "+{ \"k\": \"b\" }", "-{\"k\":\"b\",", "-{\"k\":\"a\"}",
      "-{\"k\":\"c"}},
    {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"null\"}},"
     "\"anyOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}",
     {"+{\"a\":1}", "+{\"b\":null}", "+{\"a\":1,\"b\":null}", "-{}"}},
    {"{\"allOf\":[{\"$ref\":\"#/$defs/"
     "P\"}],\"description\":\"d\",\"$defs\":{\"P\":{\"type\":\"string\",\"minLength\":1}}}",
     {"+\"a\"", "-\"\"", "-1"}},
    {"{\"allOf\":[{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"number\"}},\"required\":["
     "\"a\"]},{\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"null\"}},"
     "\"required\":[\"b\"]}]}",
     {"+{\"a\":1,\"b\":null}", "-{\"a\":1.", "-{\"a\":1}"}},
    {"{\"type\":[\"string\",\"null\"],\"maxLength\":1}",
     {"+null", "+\"\xe2\x82\xac\"", "+\"\\n\"", "-\"aa", "-\"\\n\\n", "-1"}},
    {"{\"$ref\":\"#/$defs/"
     "n\",\"$defs\":{\"n\":{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"integer\"},"
     "\"next\":{\"anyOf\":[{\"$ref\":\"#/$defs/"
     "n\"},{\"type\":\"null\"}]}},\"required\":[\"v\",\"next\"]}}}",
     {"+{\"v\":1,\"next\":null}", "+{\"v\":1,\"next\":{\"v\":2,\"next\":null}}", "-{\"v\":1}",
      "-{\"v\":1,\"next\":{}", "-null"}},
    {"{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}", {"+[]", "+[[],[[]]]", "-[1", "-{"}},
    {"{\"definitions\":{\"a/b~\":{\"const\":1}},\"$ref\":\"#/definitions/a~1b~0\"}", {"+1", "-2"}},
    {"{\"definitions\":{\"a b\":{\"const\":1}},\"$ref\":\"#/definitions/a%20b\"}", {"+1", "-2"}},
    {"{\"type\":\"integer\",\"minimum\":-12,\"maximum\":205}",
     {"+0", "+-12", "+-9", "+205", "+99", "+200", "+1", "--13", "-206", "-1000", "--0", "-00",
      "--20", "-21 ", "--100", "-1.0"}},
    {"{\"type\":\"integer\",\"exclusiveMinimum\":0}",
     {"+1", "+10", "+999999999999999999", "-0", "--", "-1000000000000000000"}},
    {"{\"type\":\"integer\",\"minimum\":0.5,\"exclusiveMaximum\":3}", {"+1", "+2", "-0", "-3"}},
    {"{\"type\":\"number\",\"minimum\":0,\"maximum\":1}",
     {"+0", "+1", "+0.25", "+1.0", "+1.000", "+0.0", "-1.1", "-1.01", "-2", "--", "-1e", "-0.5e"}},
    {"{\"type\":\"number\",\"exclusiveMinimum\":-2,\"maximum\":10}",
     {"+-1.999", "+-1", "+-0.5", "+0", "+10.0", "+9.99", "+3.14", "--2", "--2.0", "-10.1", "-11",
      "~-0.0"}},
    {"{\"type\":\"number\",\"exclusiveMinimum\":0}", {"+0.001", "+5", "+5.5", "~0", "~0.0", "--"}},
    {"{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}",
     {"+\"ab\"", "+\"a\xc3\xa9\xe2\x82\xac\"", "+\"\\ud83d\\ude00\\n\"", "-\"a\"", "-\"abcd"}},
    {"{\"type\":\"string\",\"pattern\":\"^[a-z]{2,3}(-[A-Z]+|\\\\d?)$\"}",
     {"+\"ab\"", "+\"abc7\"", "+\"ab-XY\"", "-\"a\"", "-\"abcd", "-\"ab-\"", "-\"ab77"}},
    {"{\"type\":\"string\",\"pattern\":\"b.d\"}",
     {"+\"abcde\"",
      "+\"b\xc3\xa9"
      "d\"",
      "+\"b\\\"d\"", "-\"abde\"", "-\"b\\nd\""}},
    {"{\"type\":\"string\",\"pattern\":\"^(a|bcdefg)$\",\"maxLength\":3}", {"+\"a\"", "-\"b"}},
    {"{\"type\":\"string\",\"pattern\":\"^(aa)*$\",\"minLength\":3,\"maxLength\":4}",
     {"+\"aaaa\"", "-\"aa\"", "-\"aaaaa", "-\"aaa\""}},
    {"{\"type\":\"string\",\"pattern\":\"^((a?)*)*$\",\"minLength\":2}",
     {"+\"aa\"", "+\"aaaaa\"", "-\"a\"", "-\"b"}},
    {"{\"type\":\"string\",\"pattern\":\"^[^\\\\w\\\\s]$|^\\\\u00e9\\\\.$\"}",
     {"+\"!\"", "+\"\xc3\xa9.\"", "+\"\\\\\"", "-\"a", "-\" ", "-\"\xc3\xa9x", "-\"!!"}},
    {"{\"type\":\"string\",\"format\":\"date\"}",
     {"+\"2024-02-28\"", "+\"1999-12-31\"", "-\"2024-02-30", "-\"2024-13", "-\"2024-1-1"}},
    {"{\"type\":\"string\",\"format\":\"date-time\"}",
     {"+\"2024-02-28T23:59:59Z\"", "+\"2024-02-28T23:59:59.123+02:00\"", "-\"2024-02-28 2",
      "-\"2024-02-28T24"}},
    {"{\"type\":\"string\",\"format\":\"ipv4\"}",
     {"+\"255.0.10.249\"", "-\"256", "-\"1.2.3\"", "-\"01"}},
    {"{\"type\":\"string\",\"format\":\"uuid\"}",
     {"+\"01234567-89ab-cdef-0123-456789abcdef\"", "-\"0123456\"", "-\"g"}},
    {"{\"type\":\"string\",\"format\":\"email\"}", {"+\"a.b@c.de\"", "-\"a@b\"", "-\"@", "-\"a b"}},
    {"{\"type\":\"string\",\"format\":\"color\",\"title\":\"t\",\"x-y\":1}", {"+\"red\"", "-1"}},
};

enum { N_CONSTRAINT_CASES = sizeof constraint_cases / sizeof *constraint_cases };

#endif
