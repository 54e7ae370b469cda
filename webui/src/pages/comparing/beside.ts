/** How many can be compared beside their list; the page takes more. */

export const MOST_BESIDE = 6;

export interface Compared {
  experiments?: number[];
  trials?: number[];
}

export const comparePage = ({ experiments = [], trials = [] }: Compared) =>
  `/experiments/compare?${[experiments.length ? `e=${experiments.join(",")}` : "", trials.length ? `t=${trials.join(",")}` : ""].filter(Boolean).join("&")}`;
