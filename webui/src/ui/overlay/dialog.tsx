import { Dialog } from "@base-ui/react/dialog";
import { type FormEvent, useId, useRef, useState } from "react";

import { Button } from "../button";
import type { DialogProps, Question } from "../dialog";

export function DialogBox({ title, text, onClose, children, foot, wide, className = "" }: DialogProps & { className?: string }) {
  return (
    <Dialog.Root open onOpenChange={(open) => !open && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className="veil" />
        <Dialog.Viewport className="dialog-place">
          <Dialog.Popup className={`dialog ${wide ? "wide" : ""} ${className}`}>
            <Dialog.Title>{title}</Dialog.Title>
            {text && <Dialog.Description className="said">{text}</Dialog.Description>}
            {children && <div className="body">{children}</div>}
            {foot && <footer>{foot}</footer>}
          </Dialog.Popup>
        </Dialog.Viewport>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

/** Enter accepts, unless the action is destructive: then the focus is on the cancel button. */
export function Asking({ question, onAnswer }: { question: Question; onAnswer: (yes: boolean) => void }) {
  const { title, text, verb, icon, danger, typed, cancel = danger ? "Keep" : "Cancel" } = question;
  const [written, setWritten] = useState("");
  const field = useId();
  const accept = useRef<HTMLButtonElement>(null);
  const keep = useRef<HTMLButtonElement>(null);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!typed || written === typed) onAnswer(true);
  };
  return (
    <Dialog.Root open onOpenChange={(open) => !open && onAnswer(false)}>
      <Dialog.Portal>
        <Dialog.Backdrop className="veil" />
        <Dialog.Viewport className="dialog-place">
          <Dialog.Popup className="dialog" initialFocus={typed ? undefined : danger ? keep : accept}>
            <Dialog.Title>{title}</Dialog.Title>
            <Dialog.Description className="said">{text}</Dialog.Description>
            <form onSubmit={submit}>
              {typed && (
                <div style={{ marginTop: 14 }}>
                  <label className="lbl" htmlFor={field}>
                    Type the name to confirm
                  </label>
                  <input
                    id={field}
                    className="input"
                    autoComplete="off"
                    spellCheck={false}
                    value={written}
                    onChange={(event) => setWritten(event.target.value)}
                  />
                  <p className="hint">
                    <code>{typed}</code>
                  </p>
                </div>
              )}
              <footer>
                <Button ref={keep} onClick={() => onAnswer(false)}>
                  {cancel}
                </Button>
                <Button
                  ref={accept}
                  type="submit"
                  kind={danger ? "danger" : "primary"}
                  icon={icon}
                  disabled={Boolean(typed) && written !== typed}
                >
                  {verb}
                </Button>
              </footer>
            </form>
          </Dialog.Popup>
        </Dialog.Viewport>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
