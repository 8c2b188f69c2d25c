;;; gridfuse.el --- CUDA dynamic parallelism with eglot  -*- lexical-binding: t -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1") (eglot "1.9"))
;; Keywords: c, languages, tools
;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; With this, .cu and .cuh files have gridfuse, through eglot (built in since Emacs 29): it shows which launches from device code will be
;; slow or wrong, and rewrites them.  `M-x eglot-code-actions' on a launch lists the rewrites.
;;
;; The program `gridfuse' has to be on PATH, or is named by `gridfuse-program'.

;;; Code:

(require 'cc-mode)
(require 'eglot)

(defgroup gridfuse nil
  "CUDA dynamic parallelism."
  :group 'tools)

(defcustom gridfuse-program "gridfuse"
  "The gridfuse program."
  :type 'string)

(defun gridfuse-command (&rest _)
  "Return the command for the server."
  (list gridfuse-program "lsp"))

;; The package `cuda-mode' has a mode of its own, which stays.
;;;###autoload
(define-derived-mode gridfuse-cuda-mode c++-mode "CUDA"
  "C++ with kernels.")

;;;###autoload
(unless (fboundp 'cuda-mode)
  (add-to-list 'auto-mode-alist '("\\.cuh?\\'" . gridfuse-cuda-mode)))

(add-to-list 'eglot-server-programs '((gridfuse-cuda-mode cuda-mode) . gridfuse-command))

;;;###autoload
(defun gridfuse-ensure ()
  "Start gridfuse for this buffer, if there is none yet."
  (eglot-ensure))

;;;###autoload
(add-hook 'cuda-mode-hook #'gridfuse-ensure)
(add-hook 'gridfuse-cuda-mode-hook #'gridfuse-ensure)

(provide 'gridfuse)
;;; gridfuse.el ends here
