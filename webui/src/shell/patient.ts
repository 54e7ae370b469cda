/** Parts of the web UI that are fetched when they are wanted, which may be while the gateway is away. */

import { watchHealth } from "../api/health";

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

/** As `load`; where the gateway is away, the page of this address is fetched anew once it answers.
 *
 * A part is not asked for a second time: what has failed to load is remembered by browsers, and style sheets by the loader.
 */
export async function patient<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    // It answers and has no such part: another release is there, and whoever shows the error says so.
    if (await answers()) throw error;
    await untilAnswered();
    location.reload();
    return new Promise(() => {});
  }
}
