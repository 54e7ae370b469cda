/** Parts of the web UI that are fetched when they are wanted, which may be while the gateway is away or after it was upgraded. */

import { watchHealth } from "./health";

const ANEW = "loaded anew";
/** A page that was loaded anew for this, and lacks the same part still, says so. */
const ANEW_AGAIN_MS = 60_000;
const PART_ATTEMPTS = 3;
const BETWEEN_MS = 1000;

/** Resolves with the next answer of the gateway; the banner says meanwhile that there is none. */
const untilAnswered = () =>
  new Promise<void>((resolve) => {
    const from = Date.now();
    const forget = watchHealth(({ answeredAt, silent }) => {
      if (silent || !answeredAt || answeredAt.getTime() <= from) return;
      forget();
      resolve();
    });
  });

/** Whether the gateway answers at this moment. */
const answers = () =>
  fetch("/api/v1/master/health", { signal: AbortSignal.timeout(4000) }).then(
    (answer) => answer.status < 500,
    () => false,
  );

/** As `load`, for a page that somebody goes to: where that fails its address is loaded anew, once the gateway answers.
 *
 * A page is not asked for a second time: some browsers remember what has failed to load, and the loader does of style sheets. Where the
 * gateway answers, another release may have come, whose pages have other names: only what is loaded anew knows them.
 */
export async function fetchedPage<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if (await answers()) {
      const last = Number(sessionStorage.getItem(ANEW) ?? 0);
      if (Date.now() - last < ANEW_AGAIN_MS) throw error;
      sessionStorage.setItem(ANEW, String(Date.now()));
    } else {
      await untilAnswered();
    }
    location.reload();
    return new Promise(() => {});
  }
}

/** As `load`, for what appears on a page and has no styles of its own: waits for the gateway and tries again; the page stays as it is. */
export async function fetchedPart<T>(load: () => Promise<T>): Promise<T> {
  for (let left = PART_ATTEMPTS - 1; ; ) {
    try {
      return await load();
    } catch (error) {
      if (!(await answers())) await untilAnswered();
      else if (left-- === 0) throw error;
      else await new Promise((go) => setTimeout(go, BETWEEN_MS));
    }
  }
}
