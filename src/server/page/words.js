// SPDX-License-Identifier: Apache-2.0
// What the parts of the machine are called. The server speaks of an NPU wherever linears are
// computed; which unit plays its part depends on the machine and on the weights.
const UNITS = {cpu: "INT8 units", amx: "AMX units", hexagon: "Hexagon DSP", opencl: "GPU",
               sim: "Simulated NPU"};

/** `processor` of an event, "npu" or "cpu"; `exec` and `device` of the session. */
export function processorName(processor, {exec, device}) {
  if (exec !== "npu") return processor === "npu" ? "CPU, products" : "CPU, the rest";
  if (processor === "npu") return UNITS[device] ?? "INT8 units";
  return ["cpu", "amx"].includes(device) ? "Float units" : "CPU";
}

/** One line on what computes, for the header; `exec` and `device` as /v1/models says them. */
export function machineName({device, exec}) {
  if (!device) return "";
  return exec === "npu" ? UNITS[device] ?? device : "CPU";
}
