interface Rank {
  rankId: number | null;
  failedTimestamp: string | null;
}

/** The ranks of a task: what its launcher wrote itself belongs to none. */
export const ranksOf = <T extends Rank>(ranks: T[]) => ranks.filter((rank) => rank.rankId !== null);

/** How many ranks failed. */
export const failedRanks = (ranks: Rank[]) => ranksOf(ranks).filter((rank) => rank.failedTimestamp).length;
