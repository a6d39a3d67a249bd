// SPDX-License-Identifier: Apache-2.0
// The server as functions: each throws an ApiError that a reader can understand.
import * as store from "./store.js";

export class ApiError extends Error {
  /** status 0: no answer came; retryAfter in seconds, or null. */
  constructor(message, {status = 0, retryAfter = null} = {}) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

async function refusal(response) {
  let said = null;
  try {
    said = (await response.json()).error?.message;
  } catch {
    said = null; // not from stint, e.g. a proxy's page
  }
  const wait = response.headers.get("Retry-After");
  return new ApiError(typeof said === "string" ? said : `The server answered ${response.status}.`, {
    status: response.status,
    retryAfter: wait !== null && Number(wait) >= 0 ? Number(wait) : null,
  });
}

async function request(path, options = {}) {
  const headers = new Headers(options.headers);
  const key = store.readForTab("key");
  if (key) headers.set("Authorization", `Bearer ${key}`);
  let response;
  try {
    response = await fetch(path, {...options, headers, cache: "no-store"});
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server cannot be reached. Is it still running?");
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

async function get(path) {
  const response = await request(path);
  try {
    return await response.json();
  } catch {
    throw new ApiError(`The server's answer to ${path} was cut off or is no JSON.`);
  }
}

/** As GET /v1/models lists them, at least one: {id, stint: {context, device, ...}}; what stands
 *  under `stint` may be missing as long as a model is not loaded. */
export async function models() {
  const {data} = await get("v1/models");
  const list = Array.isArray(data) ? data.filter(({id} = {}) => typeof id === "string") : [];
  if (!list.length) throw new ApiError("The server has no model.");
  return list;
}

/** How many tokens a text is. */
export async function countTokens(text, model, signal) {
  const response = await request("tokenize", {
    method: "POST",
    signal,
    headers: {"Content-Type": "application/json"},
    body: JSON.stringify({content: text, model}),
  });
  return (await response.json()).tokens.length;
}

export const health = () => get("health");
export const last = () => get("stint/last");

/** The texts after `data:` of each event of a stream, as they arrive. */
export async function* events(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const {value, done} = await reader.read();
      if (done) return;
      const lines = (rest + value).split(/\r?\n/);
      rest = lines.pop();
      for (const line of lines) {
        if (line.startsWith("data:")) yield line.slice(line[5] === " " ? 6 : 5);
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // it has ended, or nobody reads on
  }
}

/** The chunks of a streamed answer. Throws when the stream ends before it says that it is done. */
export async function* chat(body, signal) {
  const response = await request("v1/chat/completions", {
    method: "POST",
    signal,
    headers: {"Content-Type": "application/json"},
    body: JSON.stringify({...body, stream: true, stream_options:
                          {include_usage: true, continuous_usage_stats: true}}),
  });
  try {
    for await (const data of events(response.body)) {
      if (data === "[DONE]") return;
      const part = JSON.parse(data);
      if (part.error) throw new ApiError(part.error.message ?? "The server failed.", {status: 500});
      yield part;
    }
  } catch (error) {
    if (error instanceof ApiError || error.name === "AbortError") throw error;
    throw new ApiError("The connection broke off in the middle of the answer.");
  }
  throw new ApiError("The connection ended before the answer did.");
}
