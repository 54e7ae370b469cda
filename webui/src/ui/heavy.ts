/** Overlays are in a chunk of their own, fetched when the browser is idle or when one is about to open. */

import { type ComponentType, lazy } from "react";

import { fetchedPart } from "../api/fetched";

type Overlay = typeof import("./overlay");
let begun: Promise<Overlay> | null = null;

/** Loads the chunk; after a failure, the next caller retries. */
export function overlays(): Promise<Overlay> {
  begun ??= fetchedPart(() => import("./overlay")).catch((error) => {
    begun = null;
    throw error;
  });
  return begun;
}

/** Prefetches the chunk: the pointer comes near, or the browser is idle. */
export const near = () => void overlays().catch(() => undefined);

export const part = <Props>(choose: (from: Overlay) => ComponentType<Props>) => lazy(async () => ({ default: choose(await overlays()) }));
