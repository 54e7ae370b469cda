export interface Model {
  id: number;
  name: string;
  description: string;
  labels: string[];
  notes: string;
  metadata: Record<string, unknown>;
  numVersions: number;
  username: string;
  userId: number;
  workspaceId: number;
  lastUpdatedTime: string;
  archived: boolean;
}
export interface Version {
  version: number;
  name: string;
  comment: string;
  notes: string;
  labels: string[];
  metadata: Record<string, unknown>;
  creationTime: string;
  username: string;
  checkpoint: {
    uuid: string;
    metadata: Record<string, unknown>;
    resources?: Record<string, string>;
    training: { experimentId: number; trialId: number; searcherMetric: number | null } | null;
  };
}

export const TOPICS = ["models"];
export const pathOf = (name: string) => `models/${encodeURIComponent(name)}`;
export const words = (text: FormDataEntryValue | null) =>
  String(text ?? "")
    .split(",")
    .map((label) => label.trim())
    .filter(Boolean);
