import { Toast } from "@base-ui/react/toast";
import { Tooltip } from "@base-ui/react/tooltip";
import { CircleCheck, Info, OctagonX, X } from "lucide-react";
import { useEffect, useState } from "react";
import { useNavigate } from "react-router";

import { Button, IconButton } from "../button";
import { beHost, type Question, type Toast as Said } from "../host";
import { isTyping } from "../keys";
import { Keys } from "../text";
import { failed } from "../toast";
import { Asking } from "./dialog";

const SHOWN_MS = 6000;
const manager = Toast.createToastManager<Said>();

interface Asked {
  question: Question;
  answer: (yes: boolean) => void;
}

/** Shows toasts, tooltips and questions for the whole web UI. */
export function Host() {
  const [asked, setAsked] = useState<Asked[]>([]);
  useEffect(
    () =>
      beHost((toast) => {
        if (toast.kind === "question") setAsked((before) => [...before, toast]);
        else
          manager.add({
            data: toast.toast,
            timeout: toast.toast.kind === "error" ? 0 : SHOWN_MS,
            priority: toast.toast.kind === "error" ? "high" : "low",
          });
      }),
    [],
  );
  const answer = (yes: boolean) => {
    asked[0]!.answer(yes);
    setAsked(asked.slice(1));
  };
  return (
    <>
      <Toast.Provider toastManager={manager} limit={4}>
        <Toasts />
      </Toast.Provider>
      <Tips />
      {asked[0] && <Asking key={asked.length} question={asked[0].question} onAnswer={answer} />}
    </>
  );
}

const ICONS = { done: <CircleCheck />, error: <OctagonX />, info: <Info /> };

function Toasts() {
  const { toasts, close } = Toast.useToastManager<Said>();
  const navigate = useNavigate();
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const last = toasts.find((toast) => toast.data?.undo);
      if (event.key === "u" && last && !isTyping(event)) act(last.id, last.data!.undo!);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  });
  const act = (id: string, does: () => unknown) => {
    close(id);
    void Promise.resolve()
      .then(does)
      .catch((error) => failed(error));
  };
  return (
    <Toast.Portal>
      <Toast.Viewport className="toasts">
        {toasts.map((toast) => {
          const { text, kind = "done", undo, action } = toast.data!;
          return (
            <Toast.Root key={toast.id} toast={toast} className={`toast ${kind}`} swipeDirection="right">
              {ICONS[kind]}
              <Toast.Description render={<div className="words" />}>{text}</Toast.Description>
              {undo && (
                <Button small keys="U" tip="Undo" onClick={() => act(toast.id, undo)}>
                  Undo
                </Button>
              )}
              {action && (
                <Button small onClick={() => act(toast.id, () => (action.to ? navigate(action.to) : action.act?.()))}>
                  {action.name}
                </Button>
              )}
              <IconButton icon={<X />} label="Close" onClick={() => close(toast.id)} />
            </Toast.Root>
          );
        })}
      </Toast.Viewport>
    </Toast.Portal>
  );
}

const REST_MS = 400;

/** Shows the `data-tip` text of the element under the pointer or in focus. */
function Tips() {
  const [over, setOver] = useState<HTMLElement | null>(null);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const leave = () => {
      clearTimeout(timer);
      setOver(null);
    };
    const come = (target: Element, rest: number) => {
      const element = target.closest?.<HTMLElement>("[data-tip]") ?? null;
      leave();
      if (element) timer = setTimeout(() => element.isConnected && setOver(element), rest);
    };
    const point = (event: Event) => come(event.target as Element, REST_MS);
    const inFocus = (target: Element) => target.matches?.(":focus-visible") && come(target, 0);
    const focus = (event: Event) => inFocus(event.target as Element);
    // This part is loaded when the page is idle: somebody may have gone there by keyboard before.
    if (document.activeElement) inFocus(document.activeElement);
    document.addEventListener("pointerover", point);
    document.addEventListener("focusin", focus);
    for (const name of ["pointerdown", "keydown", "focusout", "wheel"]) document.addEventListener(name, leave, { passive: true });
    return () => {
      leave();
      document.removeEventListener("pointerover", point);
      document.removeEventListener("focusin", focus);
      for (const name of ["pointerdown", "keydown", "focusout", "wheel"]) document.removeEventListener(name, leave);
    };
  }, []);
  if (!over?.dataset.tip) return null;
  return (
    <Tooltip.Root open>
      <Tooltip.Portal>
        <Tooltip.Positioner anchor={over} sideOffset={6} collisionPadding={8} className="over" style={{ pointerEvents: "none" }}>
          <Tooltip.Popup className="tip-box">
            {over.dataset.tip}
            {over.dataset.keys && <Keys keys={over.dataset.keys} />}
          </Tooltip.Popup>
        </Tooltip.Positioner>
      </Tooltip.Portal>
    </Tooltip.Root>
  );
}
