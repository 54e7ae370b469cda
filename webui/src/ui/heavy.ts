/** What opens above a page comes in a chunk of its own: fetched when the browser is idle, or when it is about to be wanted. */

import { type ComponentType, lazy } from "react";

import { fetchedPart } from "../api/fetched";

type Overlay = typeof import("./overlay");
let begun: Promise<Overlay> | null = null;

/** The chunk; a fetch that failed is tried again by whoever asks next. */
export function overlays(): Promise<Overlay> {
  begun ??= fetchedPart(() => import("./overlay")).catch((error) => {
    begun = null;
    throw error;
  });
  return begun;
}

/** Fetch it before it is wanted: the pointer comes near, or nothing else is to be done. */
export const near = () => void overlays().catch(() => undefined);

export const part = <Props>(choose: (from: Overlay) => ComponentType<Props>) => lazy(async () => ({ default: choose(await overlays()) }));
