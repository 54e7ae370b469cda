/** Dialogs that ask something before an action. */

import { type ReactNode, Suspense } from "react";

import { Button } from "./button";
import { part } from "./heavy";
import { type Question, tellHost } from "./host";

const DialogBox = part((from) => from.DialogBox);

export interface DialogProps {
  title: ReactNode;
  /** Explanation below the title. */
  text?: ReactNode;
  onClose: () => void;
  children?: ReactNode;
  /** Buttons; a form has its own inside, in a `DialogFoot`. */
  foot?: ReactNode;
  wide?: boolean;
}

interface FootProps {
  onClose: () => void;
  children: ReactNode;
  icon?: ReactNode;
  disabled?: boolean;
}

/** Open while it is mounted. */
export const Dialog = (props: DialogProps) => (
  <Suspense>
    <DialogBox {...props} />
  </Suspense>
);

/** The end of a form in a dialog: a cancel button, and a submit button labelled `children`. */
export const DialogFoot = ({ onClose, children, icon, disabled }: FootProps) => (
  <div className="dialog-foot">
    <Button onClick={onClose}>Cancel</Button>
    <Button type="submit" kind="primary" icon={icon} disabled={disabled}>
      {children}
    </Button>
  </div>
);

/** Asks for confirmation; resolves with true if the user accepts. */
export const ask = (question: Question): Promise<boolean> => new Promise((answer) => tellHost({ kind: "question", question, answer }));

export type { Question };
