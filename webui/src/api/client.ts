/** The REST API client: every request of a page goes through here. */

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

const BASE = "/api/v1";
/**
 * A request that gets no answer for this long is aborted and retried: the process that took it may have died silently.
 */
const PATIENCE_MS = 60_000;

async function ask(method: string, path: string, body?: unknown): Promise<Response> {
  const answer = await fetch(path.startsWith("/") ? path : `${BASE}/${path}`, {
    method,
    body: body === undefined ? undefined : JSON.stringify(body),
    // Only GET has a timeout: a change may take long, and must not be sent twice.
    signal: method === "GET" ? AbortSignal.timeout(PATIENCE_MS) : undefined,
  });
  if (!answer.ok) throw new ApiError(answer.status, await reason(answer));
  return answer;
}

async function reason(answer: Response): Promise<string> {
  const text = await answer.text();
  try {
    const answer = JSON.parse(text);
    return answer.message ?? answer.error?.error ?? text;
  } catch {
    return text || answer.statusText;
  }
}

export const get = async <T>(path: string): Promise<T> => (await ask("GET", path)).json();
export const send = async <T>(method: string, path: string, body?: unknown): Promise<T> => (await ask(method, path, body ?? {})).json();

/** Yields the results of a streaming response as they arrive, until the stream ends or `signal` aborts it. */
export async function* stream<T>(path: string, signal: AbortSignal): AsyncGenerator<T[]> {
  const answer = await fetch(`${BASE}/${path}`, { signal });
  if (!answer.ok) throw new ApiError(answer.status, await reason(answer));
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop()!;
    const results = lines.filter(Boolean).map((line) => JSON.parse(line));
    const failure = results.find((result) => result.error);
    if (failure) throw new ApiError(failure.error.http_code, failure.error.message);
    yield results.map((result) => result.result as T);
  }
}

export function query(parameters: Record<string, unknown>): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters))
    for (const item of Array.isArray(value) ? value : [value])
      if (item !== undefined && item !== null && item !== "") params.append(name, String(item));
  return params.size ? `?${params}` : "";
}
