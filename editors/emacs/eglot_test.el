;;; eglot_test.el --- installs the package, and applies one rewrite through eglot  -*- lexical-binding: t -*-

;;; Commentary:
;; emacs --batch -l eglot_test.el, in a directory with bfs.cu; GRIDFUSE_TEST_SERVER names the gridfuse program.

;;; Code:

(require 'cl-lib)
(require 'package)
;; In an empty home, as a package from an archive would be.
(package-initialize)
(package-install-file (expand-file-name "gridfuse.el" (file-name-directory load-file-name)))
(cl-assert (package-installed-p 'gridfuse))
;; It is loaded when a file needs it.
(cl-assert (not (featurep 'gridfuse)))
(setq gridfuse-program (getenv "GRIDFUSE_TEST_SERVER"))
;; Candidates are read, not shown in a menu.
(setq last-nonmenu-event ?a)
;; How long anything may take: tests/src/patience.rs says it, in ms.  On a busy machine it is much longer than usual.
(defvar gridfuse-test-patience (/ (string-to-number (getenv "GRIDFUSE_TEST_PATIENCE")) 1000))
(setq eglot-sync-connect gridfuse-test-patience
      eglot-connect-timeout gridfuse-test-patience
      jsonrpc-default-request-timeout gridfuse-test-patience
      eglot-confirm-server-initiated-edits nil)

(defun gridfuse-test-wait (what condition)
  "Wait until CONDITION holds; fail with WHAT if it never does."
  (let ((deadline (+ (float-time) gridfuse-test-patience)) done)
    (while (not (or (setq done (funcall condition)) (> (float-time) deadline)))
      (accept-process-output nil 0.1))
    (unless done (error "Waited in vain: %s" what))
    (message "ok: %s" what)
    done))

(find-file "bfs.cu")
(cl-assert (eq major-mode 'gridfuse-cuda-mode))
(cl-assert (string-prefix-p (expand-file-name package-user-dir) (symbol-file 'gridfuse-command)))
;; In batch mode nothing runs after a command, where `eglot-ensure' waits.
(unless (eglot-managed-p)
  (apply #'eglot--connect (eglot--guess-contact)))
(gridfuse-test-wait "eglot manages the buffer" #'eglot-managed-p)
(goto-char (point-min))
(search-forward "expand<<<")
(gridfuse-test-wait "a diagnostic" (lambda ()
                                     (flymake-start)
                                     (flymake-diagnostics (line-beginning-position) (line-end-position))))

(defun gridfuse-test-choose (_prompt candidates &rest _)
  "Of CANDIDATES, choose the aggregation per block."
  (or (cl-find-if (lambda (title) (string-match-p "per block" title))
                  (mapcar (lambda (one) (if (consp one) (car one) one)) candidates))
      (error "Not offered: %S" candidates)))

(cl-letf (((symbol-function 'completing-read) #'gridfuse-test-choose)
          ((symbol-function 'y-or-n-p) (lambda (&rest _) t)))
  (eglot-code-actions (line-beginning-position) (line-end-position) nil t))
(gridfuse-test-wait "the rewrite is applied" (lambda ()
                                               (goto-char (point-min))
                                               (search-forward "gridfuse::Aggregator<gridfuse::PerBlock" nil t)))
(save-some-buffers t)
(gridfuse-test-wait "the header is written" (lambda () (file-exists-p "gridfuse.cuh")))
(ignore-errors (eglot-shutdown-all))
(kill-emacs 0)
;;; eglot_test.el ends here
