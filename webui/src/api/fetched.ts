/** Loads parts of the web UI on demand, even while the gateway is away or after it was upgraded. */

import { watchHealth } from "./health";

const ANEW = "loaded anew";
/** If the part is still missing this soon after a reload, the page reports the error instead of reloading again. */
const ANEW_AGAIN_MS = 60_000;
const PART_ATTEMPTS = 3;
const BETWEEN_MS = 1000;

/** Resolves with the gateway's next answer; until then the banner says that it does not answer. */
const untilAnswered = () =>
  new Promise<void>((resolve) => {
    const from = Date.now();
    const forget = watchHealth(({ answeredAt, silent }) => {
      if (silent || !answeredAt || answeredAt.getTime() <= from) return;
      forget();
      resolve();
    });
  });

/** Whether the gateway answers right now. */
const answers = () =>
  fetch("/api/v1/master/health", { signal: AbortSignal.timeout(4000) }).then(
    (answer) => answer.status < 500,
    () => false,
  );

/**
 * Like `load`, for a page that the user navigates to: if loading fails, reloads the address once the gateway answers.
 *
 * The import is not retried: some browsers cache failed imports, and the loader caches failed style sheets. If the
 * gateway answers, a new release may have been installed whose chunks have other names; only a reload finds those.
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

/**
 * Like `load`, for something that appears on a page and has no styles of its own: waits for the gateway and retries,
 * without reloading.
 */
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
