;;; package_test.el --- what those who look after archives of packages ask for  -*- lexical-binding: t -*-

;;; Commentary:
;; emacs --batch -l package_test.el prints what is wrong with gridfuse.el as a package, one thing a line.  GRIDFUSE_TEST_PACKAGE_LINT names
;; the directory of package-lint; without it, nothing is asked of that.

;;; Code:

(require 'checkdoc)
(require 'cl-lib)
(require 'lisp-mnt)
(require 'package)
(package-initialize)

(defvar gridfuse-test-file (expand-file-name "gridfuse.el" (file-name-directory load-file-name)))

(defun gridfuse-test-say (tool line message)
  "Print that TOOL says MESSAGE about LINE."
  (princ (format "%s: %s: %s\n" tool line message)))

;; What the compiler warns of.
(let ((copy (expand-file-name "gridfuse.el" (make-temp-file "gridfuse" t)))
      (byte-compile-log-warning-function
       (lambda (text &rest _) (gridfuse-test-say "byte-compile" "?" text))))
  (copy-file gridfuse-test-file copy)
  (unless (byte-compile-file copy)
    (gridfuse-test-say "byte-compile" "?" "does not compile"))
  (delete-directory (file-name-directory copy) t))

;; What is wrong with its comments.
(let ((checkdoc-create-error-function
       (lambda (text start &rest _)
         (gridfuse-test-say "checkdoc" (and start (line-number-at-pos start)) text)
         nil)))
  (with-current-buffer (find-file-noselect gridfuse-test-file)
    (checkdoc-current-buffer t)))

(let ((directory (getenv "GRIDFUSE_TEST_PACKAGE_LINT")))
  (when directory
    (add-to-list 'load-path directory)
    (require 'package-lint)
    ;; What there is in GNU ELPA, which isn't asked.
    (push (list 'eglot (package-desc-create :name 'eglot :version '(1 9) :archive "gnu")) package-archive-contents)
    ;; It takes eglot for a part of Emacs 29 alone: for Emacs 28 there is the package.
    (defvar package-lint-backport-libraries)
    (add-to-list 'package-lint-backport-libraries '(eglot "\\`eglot" eglot "1.9"))
    (with-current-buffer (find-file-noselect gridfuse-test-file)
      (pcase-dolist (`(,line ,_ ,_ ,text) (package-lint-buffer))
        (gridfuse-test-say "package-lint" line text)))))

(kill-emacs 0)
;;; package_test.el ends here
