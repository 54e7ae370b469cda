/** Windows that ask for something before it is done. */

import { type ReactNode, Suspense } from "react";

import { part } from "./heavy";
import { type Question, tellHost } from "./host";

const DialogBox = part((from) => from.DialogBox);

export interface DialogProps {
  title: ReactNode;
  /** What it is about, below the title. */
  said?: ReactNode;
  onClose: () => void;
  children?: ReactNode;
  /** Buttons; a form has them inside, in a `DialogFoot`. */
  foot?: ReactNode;
  wide?: boolean;
}

/** Open as long as it is there. */
export const Dialog = (props: DialogProps) => (
  <Suspense>
    <DialogBox {...props} />
  </Suspense>
);

export const DialogFoot = ({ children }: { children: ReactNode }) => <div className="dialog-foot">{children}</div>;

/** Asks once before something is done; true if it shall be. */
export const ask = (question: Question): Promise<boolean> => new Promise((answer) => tellHost({ kind: "question", question, answer }));

export type { Question };
