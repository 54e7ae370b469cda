/** Titles of machine metrics: `memory_gb.vm` is the memory of vm, in GB. */

/** By the part of the name before its first dot: title and unit. */
const KNOWN: Record<string, readonly [what: string, unit: string]> = {
  cpu_cores: ["CPU", "cores busy"],
  memory_gb: ["Memory", "GB"],
  gpu_percent: ["Use", "%"],
  gpu_memory_gb: ["GPU memory", "GB"],
  cpu_util_simple: ["CPU", "% busy"],
  free_memory: ["Free memory", "GB"],
  net_throughput_sent: ["Network, sent", "Gbit/s"],
  net_throughput_recv: ["Network, received", "Gbit/s"],
  disk_iops: ["Disk operations", "per second"],
  disk_throughput_read: ["Disk, read", "B/s"],
  disk_throughput_write: ["Disk, written", "B/s"],
  gpu_util: ["Use", "%"],
  gpu_free_memory: ["Free memory", "B"],
  samples_per_second: ["Samples", "per second"],
};

export interface Title {
  text: string;
  /** Empty if unknown. */
  unit: string;
}

/** Scripts choose the names of their metrics, so those are shown unchanged. */
export function titleOf(name: string, profile: boolean): Title {
  const [kind = "", ...rest] = name.split(".");
  const title = profile && Object.hasOwn(KNOWN, kind) ? KNOWN[kind] : undefined;
  if (!title) return { text: name, unit: "" };
  const [what, unit] = title;
  const whose = rest.join(".");
  const rank = /^rank(\d+)$/.exec(whose);
  if (rank) return { text: `${what} of rank ${rank[1]}`, unit };
  const card = kind.startsWith("gpu_") ? /^(.+)\.(\d+)$/.exec(whose) : null;
  if (card) return { text: `${what.replace("GPU memory", "Memory")} of GPU ${card[2]} of ${card[1]}`, unit };
  return { text: whose ? `${what} of ${whose}` : what, unit };
}
