import { useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";

import { send } from "../../api/client";
import { failed, toast } from "../../ui/toast";

/** Sends a change, reports success or failure, and refetches what is shown. */
export function useAct() {
  const client = useQueryClient();
  return useCallback(
    async <T = unknown>(method: string, path: string, body: unknown, done: string): Promise<T | null> => {
      try {
        const answer = await send<T>(method, path, body ?? {});
        if (done) toast({ text: done });
        return answer;
      } catch (error) {
        failed(error);
        return null;
      } finally {
        void client.invalidateQueries();
      }
    },
    [client],
  );
}
